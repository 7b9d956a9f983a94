package main

import (
	"bytes"
	"flag"
	"fmt"
	"github.com/origami-gemm/origami/internal/testing/must"
	"math/rand/v2"
	"os"
	osexec "os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"
)

var writePrices = flag.Bool("prices", false, "write what answers cost into docs/performance.md")

// mostPrice is the budget of a size of a list, on a CPU that has nothing else to do.
const mostPrice = time.Millisecond

// prices are the lists whose answers are measured: each kernel family, and each vendor's devices.
var prices = []string{
	"--arch h200", "--arch h200 --kernel mma", "--arch h200 --kernel wgmma", "--arch h200 --kernel sgemm --dtype fp32",
	"--arch h200 --kernel triton_persistent", "--arch h200 --kernel library", "--arch sm89", "--arch sm100",
	"--arch gfx90a", "--arch gfx942", "--arch gfx950",
}

// sizes returns the sizes of a list: half of them multiples of 16 up to 1,024, as in a batch, and half the sizes of
// layers. Odd ones are any numbers up to 300 instead of the former.
func sizes(count int, odd bool) string {
	layers := []int{128, 256, 512, 1024, 1536, 2048, 3072, 4096, 5120, 8192, 11008, 14336, 28672}
	r := rand.New(rand.NewPCG(5, 6))
	size := func() int {
		if r.IntN(2) == 0 {
			return layers[r.IntN(len(layers))]
		}
		if odd {
			return 1 + r.IntN(300)
		}
		return 16 * (1 + r.IntN(64))
	}
	var list strings.Builder
	list.WriteString("m,n,k\n")
	for range count {
		fmt.Fprintf(&list, "%d,%d,%d\n", size(), size(), size())
	}
	return list.String()
}

// BenchmarkList is `select` over a list of 1,000 problems, from the start of the process to its exit: the CPU time of
// the command and its plugins for each problem, in each format, with aligned sizes and with odd ones. It is the least
// of the runs. -prices writes it down.
func BenchmarkList(b *testing.B) {
	const count = 1000
	origami := binary(b)
	cost := func(b *testing.B, args, list string) (each time.Duration) {
		b.Run(args, func(b *testing.B) {
			for b.Loop() {
				cmd := osexec.Command(origami, strings.Fields(args)...)
				cmd.Stdin = strings.NewReader(list)
				if out, err := cmd.CombinedOutput(); err != nil && !strings.Contains(args, "wgmma") {
					b.Fatalf("%v: %.500s", err, out) // wgmma has no kernels for odd sizes
				}
				took := (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()) / count
				if each == 0 || took < each {
					each = took
				}
			}
			b.ReportMetric(each.Seconds()*1e3, "cpu-ms/size")
		})
		return each
	}
	var table bytes.Buffer
	fmt.Fprintf(&table, "%d sizes, CPU time of the command and its plugins for each, `make prices` on %s, %s, %s:\n\n",
		count, processor(), runtime.Version(), time.Now().UTC().Format(time.DateOnly))
	table.WriteString("| `origami select --problems` | JSON | CSV | table | JSON, odd sizes |\n")
	table.WriteString("| --- | --- | --- | --- | --- |\n")
	for _, args := range prices {
		fmt.Fprintf(&table, "| `%s` |", args)
		for column, format := range []string{"json", "csv", "table", "json"} {
			odd := column == 3
			each := cost(b, args+" select --problems - --format "+format, sizes(count, odd))
			fmt.Fprintf(&table, " %.2f ms |", each.Seconds()*1e3)
			if each > mostPrice {
				b.Logf("%s --format %s: %v a size, more than %v", args, format, each, mostPrice)
			}
		}
		table.WriteString("\n")
	}
	if *writePrices {
		writeBetween(b, filepath.Join("..", "..", "docs", "performance.md"), "prices", table.String())
	}
}

// processor is the machine that measures.
func processor() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	name := "an unknown processor"
	if found := regexp.MustCompile(`model name\s*: (.*)`).FindSubmatch(text); found != nil {
		name = string(found[1])
	}
	load, _ := os.ReadFile("/proc/loadavg")
	busy, _, _ := strings.Cut(string(load), " ")
	return fmt.Sprintf("%d cores of %s at a load of %s", runtime.NumCPU(), name, busy)
}

// writeBetween replaces the text between the comments <!-- name --> and <!-- /name --> of a page.
func writeBetween(tb testing.TB, page, name, text string) {
	tb.Helper()
	have := must.Get(os.ReadFile(page))(tb)
	first, last := "<!-- "+name+" -->\n", "<!-- /"+name+" -->"
	before, rest, found := strings.Cut(string(have), first)
	_, behind, ended := strings.Cut(rest, last)
	must.Need(tb, found && ended, "%s has no %s", page, first)
	must.Do(tb, os.WriteFile(page, []byte(before+first+text+last+behind), 0o644))
}
