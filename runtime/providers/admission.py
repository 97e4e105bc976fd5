"""Who may ask a provider now, and who waits. Pure: the time, and chance, are arguments.

Laws:
- Sessions take turns, and each one's calls go in the order they came: a session with a hundred waiting calls costs
  another one no more than one of them.
- No minute (any sixty seconds) sees more requests, or more tokens, than the limits name. A call that is larger than a
  minute's tokens goes when nothing else was sent for a minute.
- A provider that refuses for its rate is asked nothing until the time it names, or longer each time where it names
  none. Then one call goes first, and each that is answered lets one more be asked at once, so that those who waited do
  not all come at the moment it opens. One that is overloaded is asked by half as many at once.
- A call that is asked and not refused within two seconds counts as answered: models think before their first word.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf
from typing import Literal

MINUTE = 60.0
#: Calls to one provider at once where no limit is set: more only wait in another place.
CONCURRENCY = 256

_SILENCE = 2.0  # seconds after which a call that was not refused counts as taken
_FIRST_PAUSE = 1.0  # seconds; doubled by each refusal that no answer came after
_LONGEST_PAUSE = 30.0
_SPREAD = 0.25  # of a pause, and at most so many seconds: other processes wait for the same moment
_MOST_SPREAD = 5.0
_INSTANT = 1e-6  # seconds: sums of times are not exact
_FEW = 4  # calls at once that even an overloaded provider is asked


@dataclass(frozen=True, slots=True)
class Limits:
    """Calls at once, requests a minute and tokens a minute (prompt and answer) to one provider; None: no limit."""

    concurrency: int = CONCURRENCY
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None


@dataclass(slots=True, eq=False)
class Place:
    """A call on its way through. `tokens` is what it is expected to take, later what it took; `sent` is when (seconds),
    `era` how many times the provider had slowed us down by then."""

    session: str
    tokens: int
    state: Literal["waiting", "asking", "answered", "left"] = "waiting"
    sent: float = 0.0
    era: int = 0

    @property
    def admitted(self) -> bool:
        return self.state in ("asking", "answered")


@dataclass(slots=True)
class Admission:
    """Places in line for one provider and key. All times are seconds of one clock, which never goes back."""

    limits: Limits = field(default_factory=Limits)
    _lines: OrderedDict[str, deque[Place]] = field(
        default_factory=OrderedDict
    )  # by session, in the order of their turns
    _asking: OrderedDict[Place, None] = field(default_factory=OrderedDict)  # in the order they were sent
    _running: int = 0
    _minute: deque[Place] = field(default_factory=deque)
    _tokens: int = 0  # of the places in `_minute`
    _reopens: float = -inf
    _refusals: int = 0  # since the last answer
    _era: int = 0
    _pace: float = inf  # calls that may be asked and not yet answered
    _threshold: float = inf  # up to here the pace grows fast

    @property
    def next(self) -> Place | None:
        """Whose turn it is."""
        return next((line[0] for line in self._lines.values()), None)

    @property
    def waiting(self) -> int:
        return sum(len(line) for line in self._lines.values())

    @property
    def running(self) -> int:
        return self._running

    def ahead_of(self, place: Place) -> int:
        """How many calls go before `place`, if no other comes."""
        line = self._lines.get(place.session, deque())
        rounds = line.index(place)
        before = list(self._lines).index(place.session)
        others = (line for session, line in self._lines.items() if session != place.session)
        return rounds + sum(min(len(line), rounds + (turn < before)) for turn, line in enumerate(others))

    def closed_for(self, now: float) -> float:
        """Seconds for which nothing may be asked, by the provider's own wish."""
        return max(0.0, self._reopens - now)

    def ask(self, session: str, tokens: int) -> Place:
        """A place at the end of the session's line."""
        place = Place(session, max(0, tokens))
        self._lines.setdefault(session, deque()).append(place)
        return place

    def admit(self, now: float) -> list[Place]:
        """Let those go that may."""
        self._forget(now)
        return list(self._admitted(now))

    def _admitted(self, now: float) -> Iterator[Place]:
        while (place := self.next) is not None and self._wait(place, now) <= _INSTANT:
            line = self._lines[place.session]
            line.popleft()
            if line:
                self._lines.move_to_end(place.session)  # its next turn comes after all others'
            else:
                del self._lines[place.session]
            place.state, place.sent, place.era = "asking", now, self._era
            self._running += 1
            self._asking[place] = None
            if self.limits.requests_per_minute is not None or self.limits.tokens_per_minute is not None:
                self._minute.append(place)
                self._tokens += place.tokens
            yield place

    def wait(self, now: float) -> float:
        """Seconds until time alone may let the next one go; infinity where that is for other calls to say."""
        place = self.next
        return inf if place is None else self._wait(place, now)

    def _wait(self, place: Place, now: float) -> float:
        if self._running >= self.limits.concurrency:
            return inf
        wait = max(0.0, self._reopens - now, self._wait_for_minute(place, now))
        if len(self._asking) >= max(1, int(min(self._pace, self.limits.concurrency))):
            wait = max(wait, next(iter(self._asking)).sent + _SILENCE - now)
        return wait

    def _wait_for_minute(self, place: Place, now: float) -> float:
        requests, tokens = self.limits.requests_per_minute, self.limits.tokens_per_minute
        until = -inf
        if requests is not None and len(self._minute) >= requests:
            until = self._minute[len(self._minute) - requests].sent + MINUTE
        if tokens is not None:
            left = self._tokens + place.tokens
            for each in self._minute:
                if left <= tokens:
                    break
                left -= each.tokens
                until = max(until, each.sent + MINUTE)
        return until - now

    def _forget(self, now: float) -> None:
        while self._minute and self._minute[0].sent + MINUTE <= now + _INSTANT:
            self._tokens -= self._minute.popleft().tokens
        while self._asking and (first := next(iter(self._asking))).sent + _SILENCE <= now + _INSTANT:
            self.answered(first)

    def answered(self, place: Place) -> None:
        """The provider took the call: something came of it."""
        if place.state != "asking":
            return
        place.state = "answered"
        del self._asking[place]
        self._refusals = 0
        if self._pace < self.limits.concurrency:
            self._pace += 1.0 if self._pace < self._threshold else 1.0 / self._pace

    def refused(self, place: Place, *, rate: bool, retry_after: float | None, now: float, chance: float) -> None:
        """The provider asked for less: for its rate, or else as it is overloaded. `chance` is in [0, 1)."""
        self._took(place, 0)
        fresh = place.era == self._era  # all others asked before the provider had said so
        asked = min(self._pace, len(self._asking) + (place.state == "answered"), self.limits.concurrency)
        if fresh:
            self._era += 1
            self._refusals += rate
            self._threshold = max(1.0, asked / 2)
            self._pace = 1.0 if rate else max(float(_FEW), asked / 2)
        pause = retry_after
        if pause is None and rate and fresh:
            pause = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0 ** (self._refusals - 1))
        if pause is not None:
            self._reopens = max(self._reopens, now + pause + chance * min(_MOST_SPREAD, _SPREAD * pause))

    def leave(self, place: Place, used: int | None = None) -> None:
        """The call is over, or given up while it waited. `used`: the tokens that it took, where they are known."""
        if place.state == "waiting":
            line = self._lines[place.session]
            line.remove(place)
            if not line:
                del self._lines[place.session]
        elif place.admitted:
            self._asking.pop(place, None)
            self._running -= 1
            if used is not None:
                self._took(place, used)
        place.state = "left"

    def _took(self, place: Place, tokens: int) -> None:
        if self._minute and place.sent >= self._minute[0].sent:
            most = self.limits.tokens_per_minute or tokens
            tokens = min(max(0, tokens), most)  # no report, however wrong, stops a provider for more than a minute
            self._tokens += tokens - place.tokens
            place.tokens = tokens
