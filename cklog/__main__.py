"""`python -m cklog`."""

from cklog.isolation import remove_directory_of_module_run

if __name__ == "__main__":
    remove_directory_of_module_run()
    from cklog.commands import main

    main()
