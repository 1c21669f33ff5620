"""The cronmend command."""

from desktop.commands.root import main

main()
