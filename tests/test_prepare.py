"""How far the packages of the environment are, as `make` shows it, from what pip prints."""

from .release_tools import tool

prepare = tool("prepare", ".ci")
# Of pip 26: about a small file it prints no progress.
PRINTED = """\
Looking in links: /opt/wheels
Collecting idna==3.20
  Downloading idna-3.20-py3-none-any.whl.metadata (7.9 kB)
Collecting pyarrow==25.0.0
Using cached attrs-26.1.0-py3-none-any.whl (67 kB)
Downloading idna-3.20-py3-none-any.whl (69 kB)
Downloading pyarrow-25.0.0-cp311-cp311-manylinux_2_28_x86_64.whl (47.6 MB)
Progress 0 of 47600000
Progress 262144 of 47600000
Progress 47600000 of 47600000
Requirement already satisfied: pip==26.3 in /x/site-packages (26.3)
Downloading numpy-2.5.1.tar.gz (18.1 MB)
Progress 1000000 of 18100000
"""


def test_the_line_counts_packages_and_what_came_over_the_network() -> None:
    others, pyspark = prepare.Fetched("the others"), prepare.Fetched("pyspark")
    for line in PRINTED.splitlines():
        others.read(line)
    for line in ("Downloading pyspark-4.2.0.tar.gz (400.0 MB)", "Progress 400000000 of 400000000"):
        pyspark.read(line)
    assert prepare.text([others, pyspark], 98, 83.4) == (
        "6 of 98 packages, 449 MB, 83 s: fetching the others, fetching pyspark"
    )
    others.read("Installing collected packages: idna, pyarrow")
    pyspark.read("  Building wheel for pyspark (pyproject.toml): started")
    assert prepare.text([others, pyspark], 98, 90.0).endswith(
        "unpacking the others, building pyspark"
    )
