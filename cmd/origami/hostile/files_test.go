//go:build linux

package hostile

import (
	"fmt"
	"github.com/origami-gemm/origami/internal/testing/must"
	"io"
	"maps"
	"os"
	"strconv"
	"strings"
	"testing"
)

const (
	sm89 = "--arch sm89 --model reference "
	mib  = 1 << 20
	// sizes are the flags of one problem.
	sizes = " -m 512 -n 512 -k 512"
)

type files = map[string]func(io.Writer)

// inputsOf reads testdata/inputs.txt. An input has a name. In the indented lines below stand the right exit codes with
// the command, and files with what is in them: Go strings, one after the other. `* N` behind a string repeats it up to
// N bytes, and so does `% N`, with a number in it each time.
func inputsOf(t *testing.T) (list []input) {
	t.Helper()
	data := must.Get(os.ReadFile("testdata/inputs.txt"))(t)
	all := strings.NewReplacer("$VALUES", manyValues(), "$COMMAS", strings.Repeat(",", 999)).Replace(string(data))
	for line := range strings.SplitSeq(strings.TrimSpace(all), "\n") {
		text, below := strings.CutPrefix(line, "\t")
		if !below {
			list = append(list, input{name: line, files: files{}})
			continue
		}
		h := &list[len(list)-1]
		codes, args, _ := strings.Cut(text, ": ")
		name, content, isFile := strings.Cut(text, " = ")
		switch {
		case h.codes == nil:
			codes, h.slow = strings.CutPrefix(codes, "slow ")
			for code := range strings.SplitSeq(codes, ",") {
				n, err := strconv.Atoi(code)
				must.Need(t, err == nil, "%s: %v", line, err)
				h.codes = append(h.codes, n)
			}
			h.args, h.stdin, _ = strings.Cut(args, " < ")
			if first, rest, _ := strings.Cut(h.args, " "); strings.Contains(first, "=") {
				h.env, h.args = first, rest
			}
		case isFile:
			h.files[name] = contentOf(t, content)
		default:
			maps.Copy(h.files, manyTables(100))
		}
	}
	return list
}

// contentOf is what is in a file.
func contentOf(t *testing.T, all string) func(io.Writer) {
	t.Helper()
	if made := makers[all]; made != nil {
		return made
	}
	var texts [3]string // before, in and behind the repetition
	at, sign, size := 0, "", 0
	for rest := all; rest != ""; {
		quoted, err := strconv.QuotedPrefix(rest)
		one, err2 := strconv.Unquote(quoted)
		must.Need(t, err == nil && err2 == nil, "%s: %v", all, err)
		next, behind, _ := strings.Cut(strings.TrimPrefix(rest[len(quoted):], " "), " ")
		if rest = behind; next == "*" || next == "%" {
			count, behind, _ := strings.Cut(behind, " ")
			number, isMiB := strings.CutSuffix(count, "Mi")
			if size, err = strconv.Atoi(number); err != nil {
				t.Fatalf("%s: %v", all, err)
			} else if isMiB {
				size *= mib
			}
			texts[1], sign, at, rest = one, next, 2, strings.TrimPrefix(behind, "+ ")
			continue
		}
		texts[at] += one
	}
	switch sign {
	case "*":
		return repeated(texts[0], texts[1], size, texts[2])
	case "%":
		return numbered(texts[0], texts[1], size, texts[2])
	}
	return text(texts[0])
}

// makers make what is in other files.
var makers = files{
	"@honest problems 20000": honestProblems(20_000), "@honest problems 1000000": honestProblems(1_000_000),
	"@honest lines 20000": honestLines(20_000, 0), "@honest lines 100000": honestLines(100_000, 0),
	"@long lines 200": honestLines(200, mib-2048), "@long lines 1000": honestLines(1000, mib-2048),
	"@aliases": aliases, "@lock of many": lockOfMany(5000), "@llama of 2^62": text(llama(1<<62, 1)),
	"@llama of 2^24": text(llama(1<<24, 1)), "@llama of 2^24 layers": text(llama(1<<20, 1<<24)),
}

// honestProblems writes so many problems, all different.
func honestProblems(n int) func(io.Writer) {
	return func(w io.Writer) {
		_, _ = io.WriteString(w, "m,n,k\n")
		for i := range n {
			_, _ = fmt.Fprintf(w, "%d,%d,%d\n", 16*(1+i%1000), 16*(1+i/1000), 512)
		}
	}
}

func manyTables(n int) files {
	f := files{"records/dataset.json": text(`{"arch":"sm90","device":"h200","kernel":"triton",` +
		`"dtype":"fp16","input":"normal","group_m":8,"software":"x","source":"y"}`)}
	for i := range n {
		f[fmt.Sprintf("records/times%d.csv", i)] = repeated("m,n,k,bm,bn,bk,stages,warps,gm,ms,reps\n", ",", mib, "\n")
	}
	return f
}

// numbered writes a text, then a format with a number again and again, up to size bytes, then the last one.
func numbered(first, format string, size int, last string) func(io.Writer) {
	return func(w io.Writer) {
		n, _ := io.WriteString(w, first)
		for i := 0; n+len(format)+8+len(last) < size; i++ {
			part, _ := fmt.Fprintf(w, format, i)
			n += part
		}
		_, _ = io.WriteString(w, last)
	}
}

// aliases is a YAML of 10^30 words, if all its aliases were followed.
func aliases(w io.Writer) {
	_, _ = io.WriteString(w, "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n")
	for i := 1; i < 30; i++ {
		_, _ = fmt.Fprintf(w, "a%d: &a%d [%s]\n", i, i, strings.Repeat(fmt.Sprintf(",*a%d", i-1), 10)[1:])
	}
	_, _ = io.WriteString(w, "plugins: *a29\n")
}

func lockOfMany(n int) func(io.Writer) {
	return func(w io.Writer) {
		_, _ = io.WriteString(w, `{"plugins":{`)
		for i := range n {
			_, _ = fmt.Fprintf(w, `"p%d":{"sha256":"%064d","path":"/nowhere/origami-plugin-p%d"},`, i, i, i)
		}
		_, _ = fmt.Fprintf(w, `"q":{"sha256":"%064d"}}}`, 0)
	}
}

// honestLines writes measurements as a sweep writes them, with a detail of so many bytes.
func honestLines(n, detail int) func(io.Writer) {
	return func(w io.Writer) {
		status := `"status":"ok"`
		if detail > 0 {
			status = `"status":"failed","detail":"` + strings.Repeat("x", detail) + `"`
		}
		for i := range n {
			_, _ = fmt.Fprintf(w, `{"schema":1,"phase":"sweep",%s,"arch":"sm90","device":"h200","kernel":"triton",`+
				`"problem":{"m":%d,"n":64,"k":64,"batch":1,"trans_a":false,"trans_b":false,"dtype":"fp16"},`+
				`"config":{"block_m":64,"block_n":64,"block_k":64,"group_m":%d,"num_warps":4,"num_stages":2,`+
				`"split_k":1},"warm_l2":false,"input":"normal","median_seconds":0.001,"samples_seconds":[%s0.001],`+
				`"executor":"x","executor_version":"1"}`+"\n", status, 16*(1+i%20), 1+i/20, strings.Repeat("0.001,", 49))
		}
	}
}

// manyValues are the words of a space with 262,144 configurations.
func manyValues() string {
	var values []string
	for i := range 64 {
		values = append(values, fmt.Sprint(16*(i+1)))
	}
	list := strings.Join(values, ",")
	return " --space num_warps=4 --space num_stages=2 --space split_k=1 --space block_m=" + list +
		" --space block_n=" + list + " --space block_k=" + list
}

func llama(size, layers int) string {
	return fmt.Sprintf(`{"model_type":"llama","hidden_size":%d,"intermediate_size":%[1]d,"vocab_size":%[1]d,`+
		`"num_attention_heads":1024,"num_hidden_layers":%d}`, size, layers)
}
