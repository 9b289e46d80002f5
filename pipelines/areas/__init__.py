"""Areas: the questions of each, what is wrong, and its words. Surfaces lay these out.

`finding.py`, `question.py`, `problems.py` and `scope.py` are the parts. Any other module is an
area, or looks up what areas ask about.
"""
