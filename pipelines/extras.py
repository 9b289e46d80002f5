"""How to install what only some commands need: extras of the wheel, which is on no index."""

from importlib.metadata import version


def install(*extras: str) -> str:
    """What to do to have these extras."""
    which = f"extra{'s' * (len(extras) > 1)} {', '.join(extras)}"
    wheel = f"quotaflow-{version('quotaflow')}-py3-none-any.whl[{','.join(extras)}]"
    return f"install the wheel with its {which}: pip install '{wheel}'"
