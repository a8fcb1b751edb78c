"""The CPU manager: assigns exclusive CPUs to containers (CG-081). Read `manager` first; `static`
and `assignment` decide."""
