# Why Go tests failed, in few lines, from the output of go test -v: for each failed test its own messages, which stand
# far above the end among those of other tests, since tests run in parallel. Errors and logs look the same in there, so
# of the messages from one line of source only the first two are shown, of a test's the first and, since what ends a test
# comes last, the last ones, and of a program's log nothing. A package that
# fails without a failed test, since its process was killed or died of something that Go did not explain, is told with the
# last lines it printed. A test's names stand in the file that `names` says, one a line: of a test whose subtests failed, theirs.

function max(a, b) { return a > b ? a : b }
function short(s) { return substr(s, 1, 300) "\n" }

{ last[++lines % 4] = $0 }
/^ok  \t|^PASS$/ { since = lines; known = n }
/^FAIL\t/ {
	for (i = max(since + 1, lines - 3); known == n && i < lines; i++) other = other short("    " last[i % 4])
	if (known == n) {
		other = other short($0)
		unnamed[++packages] = $2 " (no test of it)"
	}
	since = lines
	known = n
	next
}
/^=== / { test = $3; next }
/^ *--- FAIL: / {
	failed[++n] = $3
	head[n] = $0
	for (parent = $3; sub(/\/[^\/]*$/, "", parent); ) inner[parent] = 1
	next
}
/^ *--- / { next }
/^ +[A-Za-z0-9_]+\.go:[0-9]+: / { # a message, of which up to three lines are shown
	more = 0
	if (/the end of .* log:|: [0-9]+ connections, |\.go:[0-9]+: (time=[0-9]|\{"time")/) next # what is told of any failed test at its end
	if (++seen[test, $1] <= 2) {
		text[test] = text[test] short("    " $0)
		more = 2
	}
	next
}
/^        / && more > 0 {
	more--
	if (!/^ *(time=[0-9]|\{"time")/) text[test] = text[test] short("    " $0)
	next
}
/^WARNING: DATA RACE/ { race = 6 }
race-- > 0 || /panic: |fatal error: |^# |\[build failed\]|\[setup failed\]|^[^ ]+\.go:[0-9]+:[0-9]+: |^goleak: |^F[0-9][0-9][0-9][0-9] |^\t+(running tests:|Test)/ {
	more = 0
	if (++others <= 8) other = other short($0)
}

END {
	each = n > 3 ? 2 : 6 # lines of messages, so that all of it stays short
	for (i = 1; i <= n; i++) {
		if (names && !inner[failed[i]]) print failed[i] >>names
		if (inner[failed[i]] && !text[failed[i]] || ++shown > 6) continue
		print head[i]
		count = split(text[failed[i]], line, "\n") - 1
		for (j = 1; j <= count; j++) if (j <= each / 2 || j > count - each / 2) print line[j]
	}
	if (shown > 6) print "and " shown - 6 " more"
	for (i = 1; names && i <= packages; i++) print unnamed[i] >>names
	printf "%s", other
}
