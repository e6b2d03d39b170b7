"""One file per operator family; each adapter steps one operator below one version."""
