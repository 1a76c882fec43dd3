"""`python -m codekv` is the `codekv` command."""

from codekv.cli import main

main()
