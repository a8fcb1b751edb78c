"""The device manager: allocates devices of device plugins to containers at admission (CG-084). Read
`manager` first."""
