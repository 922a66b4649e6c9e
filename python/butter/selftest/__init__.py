"""Does this device compute what it should? Every kernel, and whole models in all dispatch modes."""
