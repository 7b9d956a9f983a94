package serving

import (
	"bytes"
	"compress/flate"
	_ "embed" // the data
	"encoding/binary"
	"io"
	"math"
	"strconv"
	"strings"
	"sync"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/residual"
)

// operators.json has a row for each kernel of an operator and generation of devices. times.bin has by how much
// published times differ from the terms: for each layout, a line with tabs between operator, kernel, generation,
// layout, count of sizes and count of bytes, and so many bytes. experiments/step-operators writes both.
//
//go:embed operators.json
var operatorFile []byte

//go:embed times.bin
var timeFile []byte

// operator is a kernel of an operator on a generation of devices.
type operator struct {
	Operator string `json:"operator"`
	Kernel   string `json:"kernel"` // the server that has it
	// Of is the architecture of the generation, empty for devices of all others.
	Of     string    `json:"of"`
	Values []float64 `json:"values"` // of its terms
	// Powers of M, N and K: the logarithms of the powers are how far two sizes lie apart.
	Powers [3]float64 `json:"powers"`
	// Sigma is the standard deviation of the log of a time on a device that it was not fitted to.
	Sigma float64 `json:"sigma"`
}

// find returns a server's kernel for a device: of its generation, of another server if it has none there, or what
// Hopper and Blackwell share. It is nil if no row has the operator.
func find(name, server string, d *arch.Description) (best *operator) {
	most := -1
	for i := range data().operators {
		o, score := &data().operators[i], 0
		if o.Operator != name || o.Of != "" && o.Of != d.Arch {
			continue
		}
		if o.Of != "" {
			score = 2
		}
		if o.Kernel == server {
			score++
		}
		if score > most {
			best, most = o, score
		}
	}
	return best
}

// near is what published times of sizes near M, N and K multiply the terms by: 1 without any in the layout.
func (o *operator) near(layout string, m, n, k float64) float64 {
	p := times()[strings.Join([]string{o.Operator, o.Kernel, o.Of, layout}, "\t")]
	if p == nil {
		return 1
	}
	p.once.Do(func() { p.decode(o) })
	of := o.row(m, n, k)
	found := residual.At([]*residual.Series{&p.series}, &residual.Problem{M: of.M, N: of.N, K: of.K})
	return math.Exp(found.Residual)
}

// row places sizes as package residual measures distances.
func (o *operator) row(m, n, k float64) residual.Row {
	at := func(size, power float64) int { return int(math.Round(1024 * math.Pow(max(1, size), power))) }
	return residual.Row{M: at(m, o.Powers[0]), N: at(n, o.Powers[1]), K: at(k, o.Powers[2])}
}

// packed is the residuals of a kernel in a layout.
type packed struct {
	text   []byte
	once   sync.Once
	series residual.Series // once decoded
}

var times = sync.OnceValue(func() map[string]*packed {
	all := map[string]*packed{}
	for rest := timeFile; len(rest) > 0; {
		line, behind, _ := bytes.Cut(rest, []byte{'\n'})
		c := strings.Split(string(line), "\t")
		p := &packed{}
		n, err := strconv.Atoi(c[len(c)-1])
		if err == nil {
			p.series.Times, err = strconv.Atoi(c[len(c)-2])
		}
		if err != nil || n > len(behind) {
			panic("serving: times.bin is damaged") // every test reads it
		}
		p.text, rest = behind[:n], behind[n:]
		all[strings.Join(c[:len(c)-2], "\t")] = p
	}
	return all
})

// step is the step of stored residuals, as logarithms: a quarter of the deviation between devices of a generation.
const step = 0.02

// decode reads the sizes, then a byte for each residual. A size is N, K and M, each as its difference from the size
// before. Behind a new N, K and M count from 0, and behind a new K, M does.
func (p *packed) decode(o *operator) {
	text, err := io.ReadAll(flate.NewReader(bytes.NewReader(p.text)))
	if err != nil {
		panic("serving: times.bin: " + err.Error())
	}
	var last [3]uint64
	next := func(i int) {
		v, n := binary.Uvarint(text)
		text = text[n:]
		if last[i] += v; v > 0 {
			clear(last[i+1:])
		}
	}
	rows := make([]residual.Row, p.series.Times)
	for i := range rows {
		for j := range last {
			next(j)
		}
		rows[i] = o.row(float64(last[2]), float64(last[0]), float64(last[1]))
	}
	for i := range rows {
		rows[i].Residual = step * float64(int8(text[i]))
	}
	p.series.Add(rows)
}
