"""The commands about the conversation itself: /new, /stop, /model, /tokens, /held, /send, /drop, /help, /quit."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType

import anyio.to_thread

from governors.tokens import load_vocabulary

from ..agent.agent import Agent
from ..agent.renewing import WARMING
from ..errors import SessionError
from ..session.entries import SettingRecord
from ..session.naming import short_id
from ..session.view.spending import share_of
from .commands import COMMANDS, KEYS
from .compact_acts import room_lines
from .opening import TOOLS_OFF, tools_off
from .recap import counted_tokens
from .reducer import Line
from .sanitize import clean
from .seat import Act, Seat, tell
from .window import window_lines, window_use
from .wording import dollars, plural
from .wording import tokens as tokens_of


async def new(seat: Seat, argument: str) -> None:
    old = seat.agent
    supervisor = seat.runtime.supervisor
    agent = await supervisor.agent(old.name)
    await old.stop()
    await seat.settle()
    await leave(seat, old)
    if agent.model is not old.model:
        await agent.switch_model(old.model)
    seat.agent = agent
    seat.see_again()
    seat.audience.began(agent)
    tell(seat, f"New session {short_id(agent.session.id)}. The one before is kept.")


async def leave(seat: Seat, old: Agent) -> None:
    """Close the session that the conversation goes away from; what went wrong is told, and nobody stays on it."""
    try:
        await seat.runtime.supervisor.leave(old)
    except SessionError as error:
        tell(seat, f"The session before could not be closed as it should be: {error}", "error")


async def stop(seat: Seat, argument: str) -> None:
    if not seat.working:
        tell(seat, "Nothing is running.")
    await seat.stop()


async def model(seat: Seat, argument: str) -> None:
    if not argument:
        current = seat.agent.model
        why = f" ({current.why})" if current.why else ""
        how = "Another one: /model PROVIDER/MODEL, such as /model anthropic or /model ollama/NAME."
        tell(seat, f"{current.name}{why}. {how}")
        return
    chosen = await seat.runtime.choose(argument)
    await seat.agent.switch_model(chosen)
    seat.audience.began(seat.agent)
    tell(seat, f"Now talking to {chosen.name}, from the next step on.")
    if tools_off(chosen):
        tell(seat, TOOLS_OFF)


async def images(seat: Seat, argument: str) -> None:
    wanted = argument.lower()
    if wanted in ("on", "off"):
        await seat.agent.session.append(SettingRecord(name="images", value=wanted))
        tell(seat, "The model is sent pictures." if wanted == "on" else "A line stands for each picture from now on.")
        return
    told = {None: "on", "config": "off (images in moonwake.toml)"}
    held = seat.agent.room.standing().settings.get("images")
    tell(seat, f"Pictures are {told.get(held, held)}. /images off leaves them out, /images on sends them.")


async def tokens(seat: Seat, argument: str) -> None:
    agent = seat.agent
    await anyio.to_thread.run_sync(load_vocabulary)
    branch = tuple(agent.session.branch())
    measure = partial(window_use, branch, agent.model, agent.equipment.counter, agent.room.standing())
    use = await anyio.to_thread.run_sync(measure)
    seat.audience.show(window_lines(use, counted_tokens(branch), await room_lines(agent)))
    warm = share_of(agent.session.tree.entries, WARMING)
    if warm.requests:
        cost = "" if warm.cost is None else f", {dollars(warm.cost)}"
        sent = plural(warm.requests, "request")
        tell(seat, f"While nobody talked, {sent} kept the cache warm ({tokens_of(warm.read)} read{cost}).")


async def held(seat: Seat, argument: str) -> None:
    texts = [text for state, text in seat.waiting() if state == "held"]
    if not texts:
        tell(seat, "Nothing is held back.")
        return
    seat.audience.show(*(Line("queued", clean(text)) for text in texts))
    tell(seat, "/send sends, /drop drops.")


async def send(seat: Seat, argument: str) -> None:
    stream = await seat.agent.release()
    if stream is not None:
        seat.hand_on(await anext(stream, None), stream)
    elif any(state == "held" for state, _ in seat.waiting()):
        tell(seat, "A turn is running; stop it or wait for its end, then /send.")
    else:
        tell(seat, "Nothing is held back.")


async def drop(seat: Seat, argument: str) -> None:
    dropped = await seat.agent.drop()
    kept = f"Dropped {plural(dropped, 'message')}; the session file keeps it."
    tell(seat, kept if dropped else "Nothing is held back.")


async def help_(seat: Seat, argument: str) -> None:
    rows = [*COMMANDS.items(), ("", ""), *KEYS]
    seat.audience.show(Line("plain", "\n".join(f"{name:<20}{purpose}".rstrip() for name, purpose in rows)))


async def quit_(seat: Seat, argument: str) -> None:
    seat.over = True


CHAT_ACTS: Mapping[str, Act] = MappingProxyType(
    {
        "/new": new,
        "/stop": stop,
        "/model": model,
        "/images": images,
        "/tokens": tokens,
        "/held": held,
        "/send": send,
        "/drop": drop,
        "/help": help_,
        "/quit": quit_,
    }
)
