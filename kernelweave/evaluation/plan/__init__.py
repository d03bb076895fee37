"""What a fit will need before it is run: the path it takes, memory, what travels, and how long it may last.

planning ──▶ plan()      from an estimator, a shape and a machine to a Plan
paths                    which way the kernel of each view goes: stored, computed again, features, graph, blocks
counts                   how often steps, sums and moves happen
costs                    memory and work of each method in one process
blocks                   the same for rows in blocks
spreading, streaming     blocks on workers, and in files; trained: where a sample is trained on
rates                    seconds of the pieces of that work, measured here in a second or two
machine                  memory and threads of this machine and of workers
result   ──▶ Plan        what was worked out, as text and as a dict
"""

from kernelweave.evaluation.plan.planning import plan
from kernelweave.evaluation.plan.result import Plan

__all__ = ["Plan", "plan"]
