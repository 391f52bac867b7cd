"""PROXY headers: taken when they are whole, not a byte more, and otherwise waited for or refused in words."""

from collections import Counter
from random import Random

from rumq.net.listening.proxy_protocol import HEADER_BYTES_MAX, BadHeader, parse_header
from tests.fuzz.campaign import Target, Wrong
from tests.fuzz.kernels.mutate import Mutator
from tests.net.listening.test_proxy_protocol import BAD, GOOD


class Proxy(Target):
    name = "proxy"
    inputs = 2000

    def __init__(self) -> None:
        super().__init__()
        self._mutator = Mutator([*GOOD, *GOOD, *(header for header in BAD if len(header) < 5000)], False)

    def run(self, seed: int) -> Counter[str]:
        random = Random(seed)
        counts: Counter[str] = Counter()
        for data in self.each(self._mutator.inputs(self.inputs, random.getrandbits(64), random.choice((1, 1, 2)))):
            try:
                told = parse_header(data)
            except BadHeader as fault:
                if not str(fault) or len(str(fault)) > 200:
                    raise Wrong(f"refused with {str(fault)!r}") from fault
                counts["refused"] += 1
                continue
            if told is None:
                if len(data) > HEADER_BYTES_MAX:
                    raise Wrong(f"still waits after {len(data)} bytes") from None
                counts["waited for"] += 1
                continue
            if not 0 < told.size <= len(data):
                raise Wrong(f"a header of {told.size} bytes in {len(data)}")
            if parse_header(data[: told.size]) != told or parse_header(data[: told.size - 1]) is not None:
                raise Wrong(f"{told} depends on what is behind it")
            counts["taken"] += 1
        return counts
