"""The vendor toolchain as a service that explains itself."""
