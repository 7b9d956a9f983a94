package main

import (
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/cmd/origami/internal/builtins"
	"github.com/origami-gemm/origami/cmd/origami/internal/cli"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
)

// command runs a command line in this process.
func command(t *testing.T, stdin io.Reader, args ...string) (stdout string) {
	t.Helper()
	var out, errs bytes.Buffer
	code := cli.Main(cli.System{
		Args: args, Streams: iostreams.Plain(stdin, &out, &errs), Connect: builtins.Connect,
		Getenv: func(string) string { return "" },
	})
	if code != 0 || errs.Len() > 0 {
		t.Fatalf("origami %s: exit code %d, %s", strings.Join(args, " "), code, errs.String())
	}
	return out.String()
}

// `rank --include-rejected --format csv` gives the golden table: every row of the golden files of the reference
// models with the same bits, under the same column names in lower case.
func TestGoldenTablesThroughTheCommandLine(t *testing.T) {
	nvidia := renamed{"BM": "block_m", "BN": "block_n", "BK": "block_k"}
	amd := renamed{"MT_M": "block_m", "MT_N": "block_n", "MT_K": "block_k"}
	for _, tc := range []struct {
		file    string
		arch    string // if the file has no column for it
		names   renamed
		columns int // how many golden columns the command line must have
	}{
		{"../../plugins/nvidia/tritonblas/testdata/golden/sm89_candidates.csv.gz", "sm89", nvidia, 21},
		{"../../plugins/nvidia/tritonblas/testdata/golden/sm86_candidates.csv.gz", "sm86", nvidia, 21},
		{"../../plugins/amd-ref/amd-origami/testdata/golden/amd_candidates.csv.gz", "", amd, 39},
	} {
		t.Run(strings.TrimSuffix(tc.file[strings.LastIndexByte(tc.file, '/')+1:], ".csv.gz"), func(t *testing.T) {
			t.Parallel()
			golden := readGolden(t, tc.file, tc.names)
			rows := 0
			for _, call := range calls(golden, tc.arch) {
				rows += call.compare(t, golden.header, tc.columns)
			}
			if rows != len(golden.rows) {
				t.Errorf("%d of %d rows were compared", rows, len(golden.rows))
			}
		})
	}
}

type renamed map[string]string

type table struct {
	header []string
	rows   [][]string
}

func (t *table) column(name string) int { return slices.Index(t.header, name) }

func readGolden(t *testing.T, file string, names renamed) *table {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	all, err := csv.NewReader(z).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range all[0] {
		if new, ok := names[name]; ok {
			name = new
		}
		all[0][i] = strings.ToLower(name)
	}
	return &table{all[0], all[1:]}
}

// call is one command line with the golden rows that it must give.
type call struct {
	args     []string
	problems *strings.Builder
	seen     map[string]bool
	want     map[string][]string // by key
}

var keyColumns = []string{"m", "n", "k", "batch", "block_m", "block_n", "block_k"}

// calls groups the golden rows by their flags.
func calls(golden *table, arch string) map[string]*call {
	dtypes := map[string]string{"f16": "fp16", "bf16": "bf16", "f32": "fp32", "xf32": "tf32", "f8": "fp8"}
	out := map[string]*call{}
	for _, row := range golden.rows {
		get := func(name, absent string) string {
			if i := golden.column(name); i >= 0 {
				return row[i]
			}
			return absent
		}
		args := []string{"--model", "reference", "--arch", get("arch", arch), "--dtype", dtypes[get("dtype", "f16")]}
		// The golden letters are column-major: T for A and N for B mean K-contiguous.
		if get("transa", "T") == "N" {
			args = append(args, "--trans-a")
		}
		if get("transb", "T") == "N" {
			args = append(args, "--trans-b")
		}
		if golden.column("occupancy") >= 0 {
			args = append(args, "--option", "occ="+get("occupancy", ""), "--option", "grid="+get("grid_mode", ""),
				"--option", fmt.Sprintf("mi=%sx%sx%s", get("mi_m", ""), get("mi_n", ""), get("mi_k", "")))
		}
		id := strings.Join(args, " ")
		c := out[id]
		if c == nil {
			c = &call{args: args, problems: &strings.Builder{}, seen: map[string]bool{}, want: map[string][]string{}}
			c.problems.WriteString("m,n,k,batch\n")
			out[id] = c
		}
		problem := strings.Join([]string{get("m", ""), get("n", ""), get("k", ""), get("batch", "1")}, ",")
		if !c.seen[problem] {
			c.seen[problem] = true
			c.problems.WriteString(problem + "\n")
		}
		key := problem + "," + strings.Join([]string{get("block_m", ""), get("block_n", ""), get("block_k", "")}, ",")
		c.want[key] = row
	}
	return out
}

// compare runs the command line and compares the common rows and columns. It returns the number of golden rows that
// it found.
func (c *call) compare(t *testing.T, goldenHeader []string, columns int) (rows int) {
	t.Helper()
	args := append([]string{"rank", "--in-process", "--problems", "-", "--include-rejected", "--format",
		"csv"}, c.args...)
	all, err := csv.NewReader(strings.NewReader(command(t, strings.NewReader(c.problems.String()), args...))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for i, key := range all[0] { // the last part of a key, but for a term's other values and what a model counts
		if key == "rejected" || key == "candidates" {
			key = "answer." + key
		}
		for _, object := range []string{"problem.", "config.", "predicted.", "terms."} {
			key = strings.TrimPrefix(key, object)
		}
		all[0][i] = strings.TrimSuffix(key, ".value")
	}
	got := &table{all[0], all[1:]}
	type pair struct{ got, want int }
	var pairs []pair
	for i, name := range goldenHeader {
		// trans_a and dtype are in the flags.
		if j := got.column(name); j >= 0 && name != "dtype" {
			pairs = append(pairs, pair{j, i})
		}
	}
	if len(pairs) != columns {
		t.Errorf("%s: the command line has %d of the golden columns, want %d", strings.Join(c.args, " "),
			len(pairs), columns)
	}
	for _, row := range got.rows {
		var key []string
		for _, name := range keyColumns {
			key = append(key, row[got.column(name)])
		}
		want, ok := c.want[strings.Join(key, ",")]
		if !ok {
			continue // a candidate that the golden file leaves out
		}
		rows++
		for _, p := range pairs {
			refused := want[p.want] == "rejected" && row[p.got] == "" && row[got.column("status")] == "rejected"
			if !refused && !sameCell(row[p.got], want[p.want]) {
				t.Fatalf("%s, %s: %s is %s, want %s", strings.Join(c.args, " "), strings.Join(key, ","),
					got.header[p.got],
					row[p.got], want[p.want])
			}
		}
	}
	return rows
}

func sameCell(a, b string) bool {
	if a == b {
		return true
	}
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	return errX == nil && errY == nil && math.Float64bits(x) == math.Float64bits(y)
}
