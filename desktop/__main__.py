"""The cronmend command."""

import sys

sys.exit("cronmend: the app cannot be started from this tree yet; see CHANGELOG.md for what works.")
