"""How to install packages that only some commands need: extras of the wheel, which no index has."""


def install(*extras: str) -> str:
    """The instruction to install these extras, as the end of an error."""
    from importlib.metadata import version  # noqa: PLC0415  only for an error

    which = f"extra{'s' * (len(extras) > 1)} {', '.join(extras)}"
    wheel = f"quotaflow-{version('quotaflow')}-py3-none-any.whl[{','.join(extras)}]"
    return f"install the wheel with its {which}: pip install '{wheel}'"
