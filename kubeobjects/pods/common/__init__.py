"""What the checks of containers, of volumes and of whole pods share: single values (`checks`),
requests and limits (`resources`) and their sums (`totals`), security contexts and profiles
(`security`), and the fields and resources that a variable or a file names (`references`)."""
