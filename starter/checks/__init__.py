"""What `citeloop doctor` looks at, one room of the installation a module."""
