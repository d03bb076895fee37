"""The scoreboard: every multi-view method on every multi-view set, with the setting that needs no labels.

::

    methods.py     METHODS: name, library, function, setting (the functions are in adapters.py)
    data_sets.py   the multi-view sets of the data folder
         │
         ▼
    plan.py        what is left to do: method x set x seed, less what the results file holds
         │
         ▼
    fits.py        one fit in a process of its own, killed at the time limit
         │
         ▼
    records.py     one JSON line per fit, appended as soon as it ends
         │
         ▼
    board.py       means, ranks, best or tied (ranking.py has the statistics)
         │
         ▼
    screen.py · page.py · pictures.py
         │
         ▼
    command.py     ``kernelweave scoreboard`` in a checkout

Classes are read to count them and to judge what a method returned; no method is shown them.
"""
