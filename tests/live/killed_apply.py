"""`apply --yes` that ends by kill -9 after so many steps: `python killed_apply.py CONF STEPS`.

What it ends of earlier runs is no step here: which there are depends on how long those are over.
"""

import os
import signal
import sys
from pathlib import Path

from quotaflow.pipelines import config
from quotaflow.pipelines.feedback.runs import apply_run, context
from quotaflow.pipelines.terminal import output


def main() -> None:
    """Die after that many steps; exit code 0: it was over before."""
    left = int(sys.argv[2])

    def passed(step: str) -> None:
        nonlocal left
        if step == "finished":
            return
        left -= 1
        if left == 0:
            output.note(f"killed after {step}")
            os.kill(os.getpid(), signal.SIGKILL)

    conf = context.from_conf(config.load(Path(sys.argv[1])))
    apply_run.apply_plan(conf, None, output.note, on_step=passed)


if __name__ == "__main__":
    main()
