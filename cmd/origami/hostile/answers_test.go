//go:build linux

package hostile

import (
	"os"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// answers are answers of the plugin of an architecture.
var answers = []input{
	answered("Rank", "empty rankings, 2 MiB", many(empty(1), 2*mib)),
	answered("Rank", "empty rankings, 32 MiB", many(empty(1), 32*mib)),
	slowly(answered("Rank", "empty rankings, 255 MiB", many(empty(1), 255*mib))),
	packed(answered("Rank", "empty rankings, 16 MiB in gzip", many(empty(1), 16*mib))),
	packed(answered("Rank", "spaces, 1000 MiB in gzip", many(" ", 1000*mib))),
	answered("Rank", "empty reasons, 32 MiB", many(empty(8), 32*mib, 1)),
	answered("Rank", "numbers of a byte, 32 MiB", many("\x00", 32*mib, 1, 1)),
	answered("Rank", "empty names of kernels, 32 MiB", many(empty(9), 32*mib, 2, 1)),
	answered("Rank", "empty axes, 32 MiB", many(empty(10), 32*mib, 2, 1)),
	answered("Rank", "unknown fields of no bytes, 32 MiB", many(empty(15), 32*mib)),
	answered("Rank", "an unknown field of 100 MiB", many("\x00", 100*mib, 99)),
	slowly(answered("Rank", "an unknown field of 250 MiB", many("\x00", 250*mib, 99))),
	answered("Rank", "groups in groups, 32 MiB", many(group, 32*mib)),
	answered("Rank", "a diagnostic of 26 MiB", diagnostic("x", 26*mib)),
	answered("Rank", "a diagnostic of 26 MiB of escapes", diagnostic("\x1b[2J", 26*mib)),
	asJSON(answered("Rank", "a diagnostic of 26 MiB, with --json", diagnostic("x", 26*mib))),
	answered("Rank", "a diagnostic without a text", diagnostic("x", 0)),
	answered("Rank", "257 MiB", many(empty(1), 257*mib)),
	answered("Info", "a name of 32 MiB", inJSON(`{"name":"`, "x", 32*mib, `"}`, 1)),
	answered("Open", "an escaped name, 2 MiB", inJSON(`{"description":{"device_name":"`, `\u0041`, 2*mib-200, `"}}`, 2)),
	answered("Open", "terms of nothing but a name, 2 MiB", inJSON(`{"description":{"terms":[{"name":"a","kind":"step"}`,
		`,{"name":"a","kind":"step"}`, 2*mib-200, "]}}", 2)),
	answered("Open", "empty aliases, 2 MiB", inJSON(`{"description":{"aliases":[""`, `,""`, 2*mib-200, "]}}", 2)),
	answered("Open", "dimensions, 2 MiB", inJSON(`{"description":{"monotone":["m"`, `,"m"`, 2*mib-200, "]}}", 2)),
	answered("Open", "levels, 2 MiB", inJSON(`{"levels":[{"name":"a"}`, `,{"name":"a"}`, 2*mib-200, "]}", 2)),
	answered("Open", "lists in lists, 2 MiB", inJSON(`{"description":`, "[", 2*mib-200, "}", 2)),
	answered("Open", "spaces, 2 MiB", inJSON("{", " ", 2*mib-200, "}", 2)),
	answered("Open", "a number of 2 MiB", inJSON(`{"description":{"clock_hz":`, "1", 2*mib-200, "}}", 2)),
	answered("Open", "a name of 100 MiB", inJSON(`{"description":{"device_name":"`, "x", 100*mib, `"}}`, 2)),
}

// inJSON makes a message whose field of that number is JSON: a text again and again between two others.
func inJSON(first, again string, size int, last string, number protowire.Number) func() message {
	return func() message {
		m := many(again, size)().after(first)
		m.parts = append(m.parts, []byte(last))
		return m.in(number)
	}
}

// diagnostic is an answer that a ranking failed, for a reason of so many bytes that is the plugin's fault.
func diagnostic(what string, size int) func() message {
	return func() message { return many(what, size, 2)().after("\x08\x03").in(9, 1) }
}

var group = string(protowire.AppendTag(nil, 3, protowire.StartGroupType))

// streams are what a plugin sends beside its answers.
var streams = []input{
	floods("broker: knocks", lie{method: "broker", answer: many("\x08\x01\x22\x02\x08\x01", 6)}),
	floods("broker: connections", lie{method: "broker", answer: many("\x08\x01\x12\x04unix\x1a\x01/", 11)}),
	floods("stdio: 240 MiB at once", lie{method: "stdio", answer: standardOutput(240 * mib)}),
	slowly(floods("stdio: 10 bytes at once", lie{method: "stdio", answer: standardOutput(10)})),
	floods("stderr: lines", lie{method: "Rank", before: floodStderr("so it goes\n")}),
	slowly(floods("stderr: a line without end", lie{method: "Rank", before: floodStderr("x")})),
	slowly(floods("stderr: nested JSON", lie{method: "Rank", before: func() {
		floodStderr(`{"@message":` + strings.Repeat("[", 60000) + "\n")()
	}})),
	slowly(floods("stderr: log lines of 60 kB", lie{method: "Rank", before: func() {
		floodStderr(`{"@level":"debug","@message":"` + strings.Repeat("x", 60000) + "\"}\n")()
	}})),
	describing("1 MiB of empty architectures", `{"info":{"name":"hostile","version":"1"},"protocols":[2],`+
		`"manifest":{"archs":[{}`, ",{}", mib-200, "]}}"),
	describing("nested, 1 MiB", "", `{"manifest":`, mib-200, ""),
	describing("without end", "", " ", 1<<40, ""),
	floods("describe: hangs", lie{method: "describe", before: func() { time.Sleep(time.Hour) }}),
}

func standardOutput(size int) func() message {
	return func() message { return many("x", size, 2)().after("\x08\x01") }
}

const selectHostile = "--timeout 3s --arch example select" + sizes

// answered is an answer of the model's plugin to one method.
func answered(method, what string, answer func() message) input {
	return input{name: method + ": " + what, args: selectHostile, codes: []int{1, 2, 3},
		lie: &lie{method: method, answer: answer}}
}

func packed(h input) input {
	h.lie.packed = true
	return h
}

func asJSON(h input) input {
	h.args = "--json " + h.args
	return h
}

func slowly(h input) input {
	h.slow = true
	return h
}

func floods(name string, l lie) input {
	return input{name: name, args: selectHostile, codes: []int{2, 3}, lie: &l}
}

// describing is a plugin that describes itself in this text.
func describing(name, first, again string, size int, last string) input {
	return floods("describe: "+name, lie{method: "describe", before: func() {
		repeated(first, again, size, last)(os.Stdout)
		os.Exit(0)
	}})
}

// executors are answers of an executor. Those that can be recorded do not spoil the records.
var executors = []input{
	executing("Devices", "devices of nothing but names, 1 MiB", inJSON(`[{"name":"a","arch":"sm89"}`,
		`,{"name":"a","arch":"sm89"}`, mib-64, "]", 1)),
	executing("Devices", "a name of 900 KiB", inJSON(`[{"arch":"sm89","kernels":["triton"],"name":"`, "x", 900<<10,
		`"}]`, 1)),
	executing("Environment", "empty throttle reasons, 1 MiB", inJSON(`{"throttle_reasons":[""`, `,""`, mib-64, "]}", 1)),
	resumed(executing("Environment", "a throttle reason of 900 KiB", inJSON(`{"throttle_reasons":["`, "x", 900<<10,
		`"]}`, 1))),
	resumed(executing("Environment", "a driver of 900 KiB", inJSON(`{"driver":"`, "x", 900<<10, `"}`, 1))),
	executing("Environment", "a driver of 100 MiB", inJSON(`{"driver":"`, "x", 100*mib, `"}`, 1)),
	executing("Compile", "unknown fields of no bytes, 32 MiB", many(empty(15), 32*mib)),
	resumed(executing("Check", "a reference of 900 KiB", inJSON(`{"max_error":0,"tolerance":1,"checked":1,"reference":"`,
		"x", 900<<10, `"}`, 1))),
	executing("Measure", "1 MiB of times", inJSON(`[{"seconds":1}`, `,{"seconds":1}`, mib-64, "]", 1)),
}

// executing is an answer of the executor to one method.
func executing(method, what string, answer func() message) input {
	return input{name: "executor's " + method + ": " + what, codes: []int{0, 1, 2, 3},
		args: sm89 + "--timeout 3s bench --executor hostile-executor --records run --problems p.csv" +
			" --space block_m=64 --space block_n=64 --space block_k=32,64 --space num_warps=4 --space num_stages=2",
		files: files{"p.csv": text("m,n,k\n512,512,512\n")}, lie: &lie{method: method, answer: answer}}
}

func resumed(h input) input {
	h.resumes = true
	return h
}
