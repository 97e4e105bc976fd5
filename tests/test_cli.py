"""The `moonwake` command as a person or a script runs it: a process of its own, against servers on loopback."""

from __future__ import annotations

import json
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import anyio
import pytest

from runtime import __version__
from runtime.doctor import folder_findings
from tests.servers import KEY as SERVER_KEY
from tests.servers import Seen, Server, chat_text, status
from tests.shell import Shell, served, shell_in

OVERFLOW = {
    "error": {
        "code": 400,
        "message": "request (8203 tokens) exceeds the available context size (8192 tokens), try increasing it",
        "type": "exceed_context_size_error",
        "n_prompt_tokens": 8203,
        "n_ctx": 8192,
    }
}


SEGMENTS = Path(__file__).parent / "data" / "replay" / "coding-segments.jsonl.gz"


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """What is tested is another process; it does not see what this one runs on."""
    return "asyncio"


@pytest.fixture
def moonwake(tmp_path: Path) -> Shell:
    return shell_in(tmp_path)


def calls_to(server: Server) -> list[Seen]:
    """The model calls that came to a server, without the questions about what it serves."""
    return [seen for seen in server.seen if seen.method == "POST"]


async def test_version_and_help_answer(moonwake: Shell) -> None:
    done = await moonwake("--version")
    assert (done.code, done.out) == (0, f"moonwake {__version__}\n")
    done = await moonwake("--help")
    assert done.code == 0
    assert all(command in done.out for command in ("chat", "run", "init", "doctor", "model", "--version"))


async def test_a_wrong_command_is_wrong_usage(moonwake: Shell) -> None:
    done = await moonwake("frobnicate")
    assert done.code == 2
    assert "frobnicate" in done.err


async def test_run_answers_on_standard_output_and_nothing_else(moonwake: Shell) -> None:
    async with served(moonwake, chat_text("forty-two")):
        done = await moonwake("run", "what is it?")
    assert (done.code, done.out) == (0, "forty-two\n")
    assert "mine/any-model" in done.err


async def test_run_reads_standard_input_and_adds_it_to_the_text(moonwake: Shell) -> None:
    async with served(moonwake, chat_text("short")) as server:
        done = await moonwake("run", "Summarise:", said="a long text, ümläut".encode())
    assert done.code == 0
    said = server.seen[-1].json["messages"][-1]["content"]
    assert "Summarise:\n\na long text, ümläut" in str(said)


async def test_run_continues_the_newest_session(moonwake: Shell) -> None:
    async with served(moonwake, chat_text("one"), chat_text("two")) as server:
        await moonwake("run", "first")
        done = await moonwake("run", "--continue", "second")
    assert done.out == "two\n"
    assert "first" in str(server.seen[-1].json["messages"])


async def test_a_named_session_is_begun_and_gone_on_with(moonwake: Shell) -> None:
    async with served(moonwake, chat_text("one"), chat_text("two"), chat_text("three")) as server:
        await moonwake("run", "--session", "Taxes 2026", "first")
        await moonwake("run", "--session", "other", "elsewhere")
        done = await moonwake("run", "--session", "Taxes 2026", "second")
    assert done.out == "three\n"
    assert "first" in str(server.seen[-1].json["messages"])
    assert "elsewhere" not in str(server.seen[-1].json["messages"])


async def test_json_gives_every_event_as_a_line(moonwake: Shell) -> None:
    async with served(moonwake, chat_text("hello")):
        done = await moonwake("run", "--json", "hi")
    events = [json.loads(line) for line in done.out.splitlines()]
    assert [event["type"] for event in events][:2] == ["message_recorded", "state_changed"]
    assert events[-1]["type"] == "turn_finished"
    assert events[-1]["text"] == "hello"
    assert "".join(event["text"] for event in events if event["type"] == "text_delta") == "hello"


async def test_a_failed_turn_is_one_sentence_and_exit_code_1(moonwake: Shell) -> None:
    async with served(moonwake, status(401, {"error": {"message": f"Incorrect API key provided: {SERVER_KEY}"}})):
        done = await moonwake("run", "hi")
    assert done.code == 1
    assert done.out == ""
    assert "Traceback" not in done.err and SERVER_KEY not in done.err
    assert done.err.splitlines()[-1].startswith("moonwake: ")
    assert "MINE_KEY" in done.err


async def test_an_overflow_that_the_server_reports_is_fitted(moonwake: Shell) -> None:
    off = {"MOONWAKE_COMPACTION__STRATEGY": "off"}  # the model would be asked for a summary first
    async with served(moonwake, chat_text("noted"), status(400, OVERFLOW), chat_text("now it fits")) as server:
        await moonwake("run", "remember this: " + "word " * 5_000, **off)
        done = await moonwake("run", "--continue", "what was it?", **off)
    assert (done.code, done.out) == (0, "now it fits\n")
    assert "a window of 8,192). The request is made smaller" in done.err
    refused, fitted = calls_to(server)[1:]
    assert "word word" in str(refused.json["messages"])
    assert "word word" not in str(fitted.json["messages"])


async def test_run_tells_that_it_waits_for_another_attempt(moonwake: Shell) -> None:
    """Else it would be silent for as long as a provider that hangs is asked again and again."""
    busy = status(503, {"error": {"message": "come back soon"}}, {"retry-after": "0"})
    async with served(moonwake, busy, chat_text("here I am")):
        done = await moonwake("run", "hi")
    assert (done.code, done.out) == (0, "here I am\n")
    assert "come back soon. Attempt 2 in " in done.err


async def test_nothing_to_say_is_an_error(moonwake: Shell) -> None:
    done = await moonwake("run")
    assert done.code == 1
    assert 'moonwake run "hello"' in done.err


async def test_no_model_is_one_line_that_says_what_to_do(moonwake: Shell) -> None:
    done = await moonwake("run", "--model", "anthropic", "hi")
    assert done.code == 1
    assert "ANTHROPIC_API_KEY" in done.err.splitlines()[-1]


async def test_no_key_and_no_embedded_model_is_one_line_that_says_what_to_install_or_set(moonwake: Shell) -> None:
    without = "import sys; sys.modules['xllamacpp'] = None; from runtime.cli import main; main(['run', 'hi'])"
    done = await anyio.run_process(
        [sys.executable, "-c", without], check=False, cwd=moonwake.home, env=moonwake.environ, stdin=None
    )
    line = done.stderr.decode().splitlines()[-1]
    assert done.returncode == 1
    assert "ANTHROPIC_API_KEY" in line and "pip install 'moonwake[local]'" in line


async def test_init_makes_a_workspace_and_never_overwrites(moonwake: Shell) -> None:
    first = await moonwake("init", "here")
    assert first.code == 0
    assert "made AGENTS.md" in first.out and "made moonwake.toml" in first.out
    (moonwake.home / "here" / "AGENTS.md").write_text("mine")
    second = await moonwake("init", "here")
    assert second.code == 0 and "nothing was changed" in second.out
    assert (moonwake.home / "here" / "AGENTS.md").read_text() == "mine"


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ('modell = "x"', ["modell", "model", "moonwake.toml"]),
        ("model = 7", ["model", "moonwake.toml"]),
        ("model = ", ["moonwake.toml", "line 1"]),
        ('[tools]\nexec = "unconfined"', ["tools.exec", "moonwake.toml"]),
    ],
)
async def test_a_broken_config_is_named_with_its_place(moonwake: Shell, config: str, says: list[str]) -> None:
    (moonwake.home / "moonwake.toml").write_text(config)
    done = await moonwake("run", "hi")
    assert done.code == 1
    assert all(word in done.err for word in says)
    assert "Traceback" not in done.err


async def test_a_workspace_that_is_a_file_is_refused(moonwake: Shell) -> None:
    (moonwake.home / "file").write_text("")
    done = await moonwake("run", "-w", "file", "hi")
    assert done.code == 1
    assert "is a file" in done.err


async def test_a_locked_session_is_refused(moonwake: Shell) -> None:
    async with served(moonwake, chat_text("one")):
        await moonwake("run", "--session", "busy", "hi")
        (log,) = moonwake.home.rglob("busy.jsonl")
        holder = (
            "import sys, time\nfrom pathlib import Path\nfrom runtime.session.opening import open_log\n"
            "log = open_log(Path(sys.argv[1]))\nprint('held', flush=True)\nsys.stdin.read()\n"
        )
        async with await anyio.open_process([sys.executable, "-c", holder, str(log)], env=moonwake.environ) as process:
            assert process.stdout is not None
            await process.stdout.receive()
            done = await moonwake("run", "--session", "busy", "hi")
            process.kill()
    assert done.code == 1
    assert "another process" in done.err


async def test_doctor_looks_at_everything_and_tells_what_to_do(moonwake: Shell) -> None:
    done = await moonwake("doctor", "--json", OPENAI_API_KEY="sk-not-a-real-key-0123456789")
    findings = {finding["subject"]: finding for finding in json.loads(done.out)}
    assert {"versions", "workspace", "config", "vocabulary", "exec", "keys", "embedded model", "model"} <= set(findings)
    assert findings["vocabulary"]["verdict"] == "good"
    assert "OPENAI_API_KEY" in findings["keys"]["text"]
    assert "sk-not" not in done.out
    assert findings["model"]["text"].startswith("openai/")


async def test_doctor_finds_a_broken_config(moonwake: Shell) -> None:
    (moonwake.home / "moonwake.toml").write_text("modell = 1")
    done = await moonwake("doctor")
    assert done.code == 1
    assert "✗ config" in done.out


async def test_a_reader_that_goes_away_is_no_traceback(moonwake: Shell) -> None:
    command = f"{sys.executable} -m runtime.cli --help | head -1"
    done = await anyio.run_process(command, env=moonwake.environ, cwd=moonwake.home, check=False)
    assert b"Traceback" not in done.stderr


async def test_continue_with_nothing_to_continue_is_an_error_in_run(moonwake: Shell) -> None:
    """A script that wants the answer of a certain conversation must not get that of another."""
    async with served(moonwake, chat_text("one")) as server:
        done = await moonwake("run", "--continue", "hi")
    assert (done.code, done.out) == (1, "")
    assert "there is no session of assistant to continue yet" in done.err.splitlines()[-1]
    assert calls_to(server) == []


async def test_a_session_that_was_not_found_is_called_new_and_found_by_the_end_of_its_id(moonwake: Shell) -> None:
    async with served(moonwake, chat_text("one"), chat_text("two"), chat_text("three")) as server:
        first = await moonwake("run", "--session", "taxes", "hi")
        assert "; new session taxes" in first.err
        again = await moonwake("run", "--session", "taxes", "hi")
        assert "; session taxes" in again.err
        unnamed = await moonwake("run", "remember this")
        identity = unnamed.err.split("new session ")[1].split()[0]
        found = await moonwake("run", "--session", identity[-8:], "what was it?")
    assert f"; session {identity}" in found.err
    assert "remember this" in str(server.seen[-1].json["messages"])


async def test_run_says_which_workspace_it_works_in(moonwake: Shell) -> None:
    """Without a moonwake.toml above it is the user's own, wherever one stands; -w names another."""
    async with served(moonwake, chat_text("one")):
        own = await moonwake("run", "hi")
        here = await moonwake("run", "-w", ".", "hi")
    assert f"workspace: {moonwake.home}/.local/share/moonwake/workspace;" in own.err
    assert f"workspace: {moonwake.home};" in here.err


async def test_a_session_keeps_its_model_when_it_is_gone_on_with(moonwake: Shell) -> None:
    """The one that /model chose answers, unless --model names another."""
    async with served(moonwake, chat_text("one"), chat_text("two"), chat_text("three")) as server:
        await moonwake("chat", "--session", "s", said=b"/model mine/special\nhi\n")
        second = await moonwake("run", "--session", "s", "hi")
        third = await moonwake("run", "--session", "s", "--model", "mine/third", "hi")
    assert [seen.json["model"] for seen in calls_to(server)] == ["special", "special", "third"]
    assert "model: mine/special (as in this session)" in second.err
    assert "model: mine/third (asked for)" in third.err


async def test_what_a_server_says_in_an_error_does_not_steer_the_terminal(moonwake: Shell) -> None:
    async with served(moonwake, status(400, {"error": {"message": "no \x1b[2Jway"}})):
        done = await moonwake("run", "hi")
    assert done.code == 1
    assert "no way" in done.err


async def test_a_server_without_tools_tells_how_to_turn_them_off(moonwake: Shell) -> None:
    """And what it tells to write works."""
    refusal = status(400, {"error": {"message": "registry.ollama.ai/library/gemma:2b does not support tools"}})
    async with served(moonwake, refusal, chat_text("hello")) as server:
        done = await moonwake("run", "hi")
        advice = '[models."mine/any-model"] tools = false'
        assert done.code == 1
        assert advice in done.err.splitlines()[-1]
        (moonwake.home / "moonwake.toml").write_text(advice.replace("] ", "]\n"))
        done = await moonwake("run", "hi")
    assert (done.code, done.out) == (0, "hello\n")
    assert "tools" not in server.seen[-1].json


async def test_a_setting_that_a_project_may_not_make_is_told_where_it_can_be(moonwake: Shell) -> None:
    """No flag sets it, so none is offered."""
    (moonwake.home / "moonwake.toml").write_text('[providers.openai]\nbase_url = "http://example.com/v1"')
    done = await moonwake("run", "hi")
    assert done.code == 1
    assert "or by MOONWAKE_PROVIDERS__OPENAI__BASE_URL" in done.err
    assert "flag" not in done.err


async def test_sessions_without_a_word_leave_no_file(moonwake: Shell) -> None:
    async with served(moonwake, chat_text("one")):
        done = await moonwake("chat", said=b"")
    assert done.code == 0
    assert list(moonwake.home.rglob("*.jsonl*")) == []


async def test_a_model_that_is_not_known_is_refused_before_anything_is_said_of_fetching(moonwake: Shell) -> None:
    done = await moonwake("model", "get", "nonsense")
    assert done.code == 1
    assert done.err.startswith("moonwake: no weights are known by the name `nonsense`")


async def test_replay_measures_policies_on_recorded_sessions(moonwake: Shell) -> None:
    """As a table, as JSON, and as a picture; an unknown policy is named."""
    files = ("replay", str(SEGMENTS), "--policy", "append-only,cold-only")
    table = await moonwake(*files, "--hindsight", "--plot", "out.svg")
    assert table.code == 0
    assert [line.split()[0] for line in table.out.splitlines()[:4]] == [
        "policy",
        "append-only",
        "cold-only",
        "hindsight",
    ]
    assert ElementTree.parse(moonwake.home / "out.svg").getroot().tag.endswith("svg")
    told = await moonwake(*files, "--json", "--model", "anthropic/claude-opus-4-5", "--budget", "150000")
    assert [line["policy"] for line in json.loads(told.out)["policies"]] == ["append-only", "cold-only"]
    wrong = await moonwake("replay", str(SEGMENTS), "--policy", "nonsense")
    assert wrong.code == 1
    assert "there is no policy 'nonsense'" in wrong.err


def test_a_workspace_that_cannot_be_made_is_found_by_its_nearest_parent(tmp_path: Path) -> None:
    """The first folder above that exists decides, however far above it is."""
    far = tmp_path / "not" / "yet" / "there"
    (good,) = folder_findings(far)
    assert (good.verdict, good.advice) == ("note", f"mkdir -p {far.parent} && moonwake init {far}")
    (locked,) = folder_findings(far, writable=lambda folder: folder != tmp_path)
    assert locked.verdict == "bad"
    assert f"{tmp_path} is not writable" in locked.text
    (tmp_path / "not").write_text("a file")
    (below,) = folder_findings(far)
    assert below.verdict == "bad"
    assert f"{tmp_path / 'not'} is not a folder" in below.text


async def test_a_script_plays_the_model(moonwake: Shell, tmp_path: Path) -> None:
    """A rehearsal; one that is no script is told with its line."""
    script = tmp_path / "a moon.txt"
    script.write_text("The moon is full.\n@otherwise\nBye.\n", encoding="utf-8")
    done = await moonwake("run", "--model", f"script:{script}", "Is it full?")
    assert (done.code, done.out) == (0, "The moon is full.\n"), done.err
    script.write_text("@reply\nHi\n@bye\n", encoding="utf-8")
    done = await moonwake("run", "--model", f"script:{script}", "Is it full?")
    assert done.code != 0 and "line 3: there is no @bye" in done.err and "Traceback" not in done.err
