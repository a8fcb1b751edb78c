"""The runtimes a case can run on, behind one interface (`base.Runtime`)."""
