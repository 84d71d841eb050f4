"""Print chains of checked steps; the exit status says whether every step passed."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from spikesym.symbolic.derivation import Derivation


def show(chains: Iterable[Derivation]) -> int:
    failed = 0
    for chain in chains:
        print(f"\n{chain.title}\n{'=' * len(chain.title)}")
        for number, (step, check) in enumerate(zip(chain, chain.check(), strict=True), 1):
            failed += not check.passed
            print(f"\n{number}. {step.rule}   [{'ok' if check.passed else 'FAILED'}: {check.detail}]")
            print(f"   {step.latex()}" if "--latex" in sys.argv else f"   {step.before}\n   = {step.after}")
        for name, result in chain.results.items():
            print(f"\n-> {name}: {result}")
    print(f"\n{'every step passed' if not failed else f'{failed} steps FAILED'}")
    return 1 if failed else 0
