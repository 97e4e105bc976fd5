"""The tool exec, in the sandbox and unconfined."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from runtime.errors import ToolError
from runtime.tools import sandbox
from runtime.tools.base import Tool, ToolContext
from runtime.tools.sandbox import reduced_environment, sandbox_problem, sandboxed
from runtime.tools.shell import ExecMode, make_exec
from runtime.tools.standard import standard_tools

from .tool_calls import Call, run_call

PROBLEM = sandbox_problem()
needs_sandbox = pytest.mark.skipif(PROBLEM is not None, reason=PROBLEM or "")
in_sandbox = make_exec("sandbox")
both = pytest.mark.parametrize("mode", [pytest.param("sandbox", marks=needs_sandbox), "unconfined"])


@both
async def test_a_command_says_what_it_printed_and_how_it_ended(
    context: ToolContext, call: Call, mode: ExecMode
) -> None:
    """It starts in the workspace, output comes in order, a failure is an error output."""
    execute = make_exec(mode)
    workspace = context.workspace.resolve()
    assert await call(execute, command="pwd; echo b >&2; echo c") == f"{workspace}\nb\nc\n[exit code 0]"
    assert await call(execute, command="true") == "[exit code 0]"
    assert await call(execute, fails=True, command="echo a; exit 7") == "a\n[exit code 7]"
    assert await call(execute, fails=True, command="echo a; sleep 1000", timeout=0.3) == (
        "a\n[timed out after 0.3 s; the command was ended]"
    )


@both
async def test_bad_commands_run_nothing(call: Call, mode: ExecMode) -> None:
    """NUL, surrogates, size and time are checked before anything starts."""
    execute = make_exec(mode)
    for command, said in (("a\0", "NUL"), ("a\ud800", "surrogate"), ("#" * 130_000, "130,000 bytes")):
        assert said in await call(execute, fails=True, command=command)
    assert "timeout: expected" in await call(execute, fails=True, command="true", timeout=60_000)


@both
async def test_environment_holds_no_keys(call: Call, mode: ExecMode, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command sees paths and language, no secrets; HOME is the workspace."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    text = await call(make_exec(mode), command="env; cat /proc/self/environ /proc/1/environ 2>/dev/null; echo $HOME")
    assert mode == "unconfined" or "sk-secret" not in text
    names = {line.partition("=")[0] for line in (await call(make_exec(mode), command="env")).splitlines()[:-1]}
    assert names <= {"PATH", "HOME", "LANG", "TERM", "PWD", "SHLVL", "_", "OLDPWD"}


def test_reduced_environment_has_defaults() -> None:
    """An empty environment still gives a usable one."""
    assert reduced_environment({"A_KEY": "x"}, "/w") == {
        "PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/w", "LANG": "C.UTF-8", "TERM": "dumb",
    }  # fmt: skip


@both
async def test_a_flood_is_cut_once(call: Call, mode: ExecMode) -> None:
    """100 MB printed reach the model as two ends and a count."""
    text = await call(make_exec(mode), command="echo start; head -c 100000000 /dev/zero | tr '\\0' x; echo; echo end")
    assert len(text) < 40_000
    assert text.startswith("start\nxxx")
    assert text.endswith("xxx\nend\n[exit code 0]")
    assert text.count("cut here") == 1
    assert "of 100,000,011 bytes" in text


@both
async def test_fault_155_background_processes_do_not_hang_the_call(call: Call, mode: ExecMode) -> None:
    """A grandchild that holds the pipe is ended, and its command returns at once."""
    with anyio.fail_after(15):
        assert await call(make_exec(mode), command="sleep 1000 & echo ok") == "ok\n[exit code 0]"


LEAVE = "setsid sh -c 'echo $$ > pid.new; mv pid.new pid; exec sleep 1000' & while [ ! -e pid ]; do :; done; "


async def test_fault_155_unconfined_process_that_left_the_group(context: ToolContext, call: Call) -> None:
    """It cannot be ended, but it cannot hang the call either, and the model is told."""
    with anyio.fail_after(15):
        text = await call(make_exec("unconfined"), command=LEAVE + "echo ok")
    os.kill(int((context.workspace / "pid").read_text()), signal.SIGKILL)
    assert text == "ok\n[exit code 0]\n[a process it started is still running and holds its output]"


@needs_sandbox
@pytest.mark.parametrize("ending", ["echo ok", "sleep 1000"])
async def test_fault_155_sandbox_ends_even_what_left_the_group(context: ToolContext, ending: str) -> None:
    """Whether the command ends or its time does, nothing of it is left, `setsid` or not."""
    fifo = context.workspace / "alive"
    os.mkfifo(fifo)
    watch = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    with anyio.fail_after(15):
        text = await run_call(
            in_sandbox, context, ending != "echo ok", {"command": f"exec 3>alive; {LEAVE}{ending}", "timeout": 1}
        )
        await until_closed(watch)
    assert "still running" not in text


async def until_closed(watch: int) -> None:
    while True:
        await anyio.wait_readable(watch)
        if not os.read(watch, 100):
            break
    os.close(watch)


@needs_sandbox
async def test_sandbox_shows_nothing_of_the_host(context: ToolContext, call: Call) -> None:
    """Home folders, other files of /tmp, password hashes and processes are not there; system programs are."""
    secret = context.workspace.parent / "secret"
    secret.write_text("key")
    (context.workspace / "link").symlink_to("../secret")
    for path in (str(secret), "link", "/etc/shadow", "/root", "/home", f"/proc/{os.getpid()}/root", "/var/lib"):
        await call(in_sandbox, fails=True, command=f"ls -L {path}")
    assert "[exit code 0]" in await call(in_sandbox, command="ls /usr/bin/env && grep -c root /etc/passwd")


@needs_sandbox
async def test_sandbox_lets_write_the_workspace_only(context: ToolContext, call: Call) -> None:
    """Files in the workspace are really written; system folders and the root are read-only."""
    await call(in_sandbox, command="mkdir a && echo hi > a/b && echo x > /tmp/scratch && ls /tmp/scratch")
    assert (context.workspace / "a" / "b").read_text() == "hi\n"
    for path in ("/x", "/usr/x", "/etc/x"):
        await call(in_sandbox, fails=True, command=f"touch {path}")
    assert "No such file" in await call(in_sandbox, fails=True, command="cat /tmp/scratch")
    assert "CapEff:\t0000000000000000" in await call(in_sandbox, command="grep CapEff /proc/self/status")


@needs_sandbox
@pytest.mark.parametrize("there", [True, False])
async def test_sandbox_protects_logs_and_settings(context: ToolContext, call: Call, there: bool) -> None:
    """Logs are hidden, settings read-only, whether they were there before or not, and whatever is tried."""
    settings, logs = context.workspace / "moonwake.toml", context.workspace / ".moonwake"
    if there:
        settings.write_text("# mine\n")
        logs.mkdir()
        (logs / "log").write_text("entry")
    await call(in_sandbox, fails=True, command="cat .moonwake/log")
    for attempt in (
        "echo x > moonwake.toml", "rm -f moonwake.toml", "mv moonwake.toml y",
        "ln moonwake.toml hard && echo x >> hard",
        "touch .moonwake/x", "rm -rf .moonwake", "mv .moonwake y", "umount .moonwake",
        "unshare -Urm sh -c 'umount .moonwake'", "unshare -Urm sh -c 'mount -o remount,rw,bind moonwake.toml'",
    ):  # fmt: skip
        await call(in_sandbox, fails=True, command=attempt)
    text = settings.read_text()
    assert text == "# mine\n" if there else "cannot create it" in text
    assert [path.name for path in logs.iterdir()] == (["log"] if there else [])


@needs_sandbox
async def test_sandbox_has_no_network_unless_allowed(call: Call) -> None:
    """A port that listens on the host is reached only by a tool that was allowed the network."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        command = f"exec 3<>/dev/tcp/127.0.0.1/{server.getsockname()[1]}"
        await call(in_sandbox, fails=True, command=command)
        await call(make_exec("sandbox", network=True), command=command)


def test_description_tells_of_the_network() -> None:
    """The model knows what it may expect."""
    assert "without network" in make_exec("sandbox").spec.description
    assert "with network" in make_exec("sandbox", network=True).spec.description
    assert "with network" in make_exec("unconfined").spec.description


@needs_sandbox
def test_sandbox_refuses_workspaces_it_cannot_protect(tmp_path: Path) -> None:
    """The root of the file system, and settings or logs behind a symlink, give a reason."""
    with pytest.raises(ToolError, match="whole file system"):
        sandboxed(["true"], "/", network=False)
    (tmp_path / "moonwake.toml").symlink_to("elsewhere")
    with pytest.raises(ToolError, match="must not be symlinks"):
        sandboxed(["true"], str(tmp_path), network=False)


def test_missing_and_refused_sandbox_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without bubblewrap it says what to install; refused by the system, it says what the system said."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "apt install bubblewrap" in (sandbox.sandbox_problem() or "")
    fake = tmp_path / "bwrap"
    fake.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2; exit 1\n")
    fake.chmod(0o755)
    assert "No permissions to create new namespace" in (sandbox.sandbox_problem() or "")


VICTIM = """
import anyio, sys
from pathlib import Path
from runtime.tools.base import ToolContext
from runtime.tools.shell import make_exec
context = ToolContext(Path(sys.argv[1]), "a", "s", (1, 0))
command = {"command": "exec 3>alive; echo up >&3; sleep 1000", "timeout": 600}
anyio.run(make_exec("sandbox").run, command, context, backend=sys.argv[2])
"""


@needs_sandbox
async def test_sandbox_dies_with_the_runtime(context: ToolContext, anyio_backend_name: str) -> None:
    """When the runtime is killed outright, no command of it lives on."""
    fifo = context.workspace / "alive"
    os.mkfifo(fifo)
    watch = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    victim = start([sys.executable, "-c", VICTIM, str(context.workspace), anyio_backend_name])
    try:
        with anyio.fail_after(15):
            await anyio.wait_readable(watch)
            assert os.read(watch, 100) == b"up\n"
            victim.kill()
            await until_closed(watch)
    finally:
        victim.kill()
        victim.wait()


def start(command: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, cwd=Path(__file__).parents[2])


def test_standard_tools_follow_the_mode() -> None:
    """Exec is there unless it is off."""
    files = ["edit_file", "grep", "list_dir", "read_file", "recall", "write_file"]
    assert names(standard_tools("off")) == files
    assert names(standard_tools("unconfined")) == [*files, "exec"]


def names(tools: tuple[Tool, ...]) -> list[str]:
    return [tool.spec.name for tool in tools]


def test_standard_tools_say_what_may_be_repeated_and_stubbed() -> None:
    """Only reading may be repeated after a crash; bulky output may be reduced."""
    by_name = {tool.spec.name: tool.spec for tool in standard_tools("unconfined")}
    assert {name for name, spec in by_name.items() if spec.read_only} == {"read_file", "list_dir", "grep", "recall"}
    assert {name for name, spec in by_name.items() if spec.bulky} == {"read_file", "list_dir", "grep", "exec"}
