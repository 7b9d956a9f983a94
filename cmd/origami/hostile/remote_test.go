//go:build linux

package hostile

import "io"

// remote are the two ends of a command at whose other end an executor is: what a lender is sent, and what it sends.
var remote = []input{
	lend("no line, 1 GiB", repeated("", "x", 1<<30, "")),
	lend("empty lines, 64 MiB", repeated("", "\n", 64*mib, "")),
	lend("a key of 1 GiB", repeated("bm9uZQ==\n", "x", 1<<30, "")),

	borrow("no line, 1 GiB", repeated("", "x", 1<<30, "")),
	borrow("lines, 64 MiB", repeated("", "x\n", 64*mib, "")),
	borrow("no connection behind its line, 1 GiB", repeated("1|1|unix|/nowhere|grpc|\n", "x", 1<<30, "")),
	borrow("another version", text("1|99|unix|/nowhere|grpc|\n")),
}

// lend is what somebody sends to a lender.
func lend(what string, content func(io.Writer)) input {
	return input{name: "lend: " + what, codes: []int{2}, args: "lend hostile-executor", files: files{"in": content},
		stdin: "in"}
}

// borrow is what a lender sends. The words of a command line have no blanks here.
func borrow(what string, content func(io.Writer)) input {
	return input{name: "tune --remote: " + what, codes: []int{3},
		args:  sm89 + "tune p.csv --executor hostile-executor --records run --remote cat<in",
		files: files{"p.csv": text("m,n,k\n512,512,512\n"), "in": content}}
}
