"""FakeCRI: the fake runtime as tests hold it.

Works on any asyncio loop. On a `simclock.VirtualLoop` it needs no real time; on a real one it is
what `fakecri serve` puts on a socket. `world/assembly.py` puts it together; what can be seen and
touched in it is `world.World`, what is recorded and disturbed `rules.instrument.Instrumented`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Unpack

from fakecri.clockwork.loop_clock import LoopClock
from fakecri.core.image_store.images import ImageStore, any_image
from fakecri.machine.node import FakeNode
from fakecri.options import OptionFields, Options, chosen_options
from fakecri.rules.faults import Rule
from fakecri.rules.instrument import Instrumented
from fakecri.words.behaviors import Behavior
from fakecri.world.assembly import assemble
from fakecri.world.world import World
from kubeobjects.arguments import arguments_told, tells_arguments
from simclock import Clock, Ids, Rng


@arguments_told
class FakeCRI(Instrumented, World):
    """A programmable CRI runtime and image service, on any asyncio loop.

    `clock`: by default that of the running loop (a VirtualLoop's own, else the machine's). `ids`:
    gives ids to objects; by default the same ones in every run. `node`: the machine, by default
    that of the script, else a new `FakeNode`. Everything else is a field of `Options`, given by
    name or as `options`.

    Raises TypeError for an option that there is not or of another type, ValueError for a value that
    cannot be.
    """

    @tells_arguments(*OptionFields.__annotations__)
    def __init__(
        self,
        clock: Clock | None = None,
        ids: Ids | None = None,
        node: FakeNode | None = None,
        *,
        options: Options | None = None,
        **fields: Unpack[OptionFields],
    ) -> None:
        _check_kinds(clock, ids, node)
        chosen = chosen_options(options, fields)
        script = None
        if chosen.script is not None:
            # YAML takes a while to import, and few fakes are made of a script.
            from fakecri.scripts.script import load_script, node_of, options_of

            script = load_script(chosen.script)
            chosen = chosen.completed(options_of(script), fields.keys())
            node = node or node_of(script)
        node = node or FakeNode()
        self._made_with = (clock or LoopClock(), ids, node, node.settings(), chosen, script)
        self._put_together()

    def _put_together(self) -> None:
        """Make every part anew. Raises ScriptError for a script with rules that cannot be."""
        clock, ids, node, _, chosen, script = self._made_with
        parts = assemble(clock, ids or Ids(Rng(0)), node, chosen)
        self.behaviors = parts.programming.behaviors
        Instrumented.__init__(
            self,
            clock,
            parts.answers,
            faults=parts.faults,
            books=(self.behaviors, parts.faults.rules, parts.streaming.rules),
            under_way=parts.under_way,
            fake=parts.programming,
            call_limit=chosen.call_limit,
            latency=chosen.latency,
        )
        World.__init__(
            self,
            parts.core,
            parts.clockwork,
            parts.outage,
            events=parts.events,
            streaming=parts.streaming,
            under_way=parts.under_way,
        )
        self.ports = parts.ports
        self.listening = parts.listening
        self.streaming = parts.streaming
        """What Exec, Attach and PortForward reach: `cri.streaming.command("ls", ...)`, ..."""
        self._answers = parts.answers
        self._programming = parts.programming
        self._programs = parts.programs
        if script is not None:
            from fakecri.scripts.script import apply_script  # as above

            apply_script(script, self)
            if chosen.registry is not any_image:
                self.images.registry = chosen.registry

    async def reset(self) -> None:
        """The fake as it was made: no pods, containers, rules and calls, the images and the script
        of its options, its node as it was given, with empty cgroups. Calls under way fail as in a
        crash, streams end. Time goes on, and ids given out by an `ids` of the caller do not come
        back."""
        self.crash(loses_state=True)
        await self.stop_streaming()
        _, _, node, settings, _, _ = self._made_with
        node.restore(settings)
        self._put_together()

    def __repr__(self) -> str:
        containers = ", ".join(
            f"{c.pod.name}/{c.name} {c.state.name}" for c in self.core.containers.values()
        )
        return (
            f"<FakeCRI {'down, ' if self.is_down else ''}{len(self.core.sandboxes)} pods, "
            f"containers: {containers or 'none'}; {len(self.calls())} calls, "
            f"{len(self.rules())} rules>"
        )

    def behaves(
        self,
        *behaviors: Behavior,
        pod: str | None = None,
        container: str | None = None,
        image: str | None = None,
        attempt: int | None = None,
        first_attempts: int | None = None,
        times: int | None = None,
    ) -> Rule:
        """Let containers that fit do this, from their next start on. Returns the rule, which ends
        the effect with `remove()` or as a `with` block.

        A container fits if everything given fits: `pod` (a name or a UID), `container` and `image`
        may be patterns (`web*`); `attempt` is its attempt number. Of several rules the newest
        decides, for each kind of behaviour. `first_attempts`: only so many first attempts of each
        container (numbers from 0), so that what crashes at first runs in the end. `times`: how many
        starts the rule decides in all; None: no limit. Raises WordError for what is no
        behaviour.
        """
        return self._programming.behaves(
            *behaviors,
            pod=pod,
            container=container,
            image=image,
            attempt=attempt,
            first_attempts=first_attempts,
            times=times,
        )

    @property
    def images(self) -> ImageStore:
        """The image store: `cri.images.add("name:tag")`, `.remove(...)`, `.registry = ...`."""
        return self.core.images

    def add_programs(self, names: Iterable[str]) -> None:
        """Put programs with these names into all images; they do nothing and succeed. `*`: every
        name."""
        self._programs.of_images += tuple(names)

    def limit_list_batches(self, items: int) -> None:
        """Let a message of a streaming list carry at most so many items (default 5000; CRI-150)."""
        self._answers.list_batch_items = items

    async def stop_streaming(self) -> None:
        """End the streams and their server, and the sockets of pods, if there are any."""
        await self.streaming.stop()
        if self.listening is not None:
            await self.listening.stop()


def _check_kinds(clock: object, ids: object, node: object) -> None:
    """Refuse what would otherwise fail at the first call that needs it. Raises TypeError."""
    parts: Mapping[str, tuple[object, type]] = {
        "clock": (clock, Clock),
        "ids": (ids, Ids),
        "node": (node, FakeNode),
    }
    for name, (value, kind) in parts.items():
        if value is not None and not isinstance(value, kind):
            raise TypeError(f"{name}: wanted a {kind.__name__}, got {value!r}")
