"""The command `rumqd`: `main` dispatches to one module a subcommand, in a folder for each kind of job."""
