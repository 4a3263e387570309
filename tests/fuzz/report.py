"""The table of a run, and its faults."""

from tests.fuzz.tally import Tally

__all__ = ["print_report"]

_HEAD = ("target", "inputs", "read", "documented errors", "wrong", "slowest (ms)")


def print_report(tallies, seed):
    """Print the results of each target, and the shortest input of each fault.

    Args:
        tallies: A `Tally` for each target, by its name.
        seed: The seed of the run.
    """
    total = Tally()
    for tally in tallies.values():
        total.add(tally)
    print("| " + " | ".join(_HEAD) + " |")
    print("| --- |" + " ---: |" * (len(_HEAD) - 1))
    for name, tally in [*tallies.items(), ("**all**", total)]:
        counts = (tally.inputs, tally.read, tally.rejected, tally.wrong)
        cells = [name, *(f"{count:,}" for count in counts)]
        print(f"| {' | '.join(cells)} | {tally.slowest * 1000:,.1f} |")
    for name, tally in tallies.items():
        for cause, fault in tally.faults.items():
            print(f"\n{name}: {cause}, {fault.times:,} times: {fault.error}")
            print(f"  {fault.shown}")
            again = f"--seed {seed} --only {name} --one {fault.number}"
            print(f"  python -m tests.fuzz {again}")
