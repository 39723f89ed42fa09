"""`python -m cklog`."""

from cklog.commands import main

if __name__ == "__main__":
    main()
