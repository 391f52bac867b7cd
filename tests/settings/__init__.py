"""Every key of the table: a change of it in the file, SIGHUP, and where a running broker shows it."""
