// Package nearby has how far the predictions of kernel family library are from published times, time by time: the rows
// of package residual. They are of all tables in plugins/library/published, of which that package ships a part.
package nearby

import (
	"bytes"
	"compress/flate"
	_ "embed" // the file
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/residual"
	"github.com/origami-gemm/origami/plugins/library/checked"
)

// times.bin is written by `make checked`. A part is a line with tabs between device, its units and bandwidth, scheme of
// scales, release, types, Pool.Local, series and count of bytes, and so many bytes.
//
//go:embed times.bin
var file []byte

// Pool is the published times of types that cost the same on a device, for a scheme of scales and a release.
type Pool struct {
	Device, Scheme, Release, Types string
	Board                          Board
	Local                          bool               // times say nothing of another N and K: IsLocal
	Series                         []*residual.Series // without their rows, which Rows decodes

	packed []byte
	once   sync.Once
}

// Board is how much of a die a card has: its SMs or CUs, and bytes per second of DRAM.
type Board struct{ Units, DRAM float64 }

// Sisters differ in one thing: in their memory, or in their units by at most atMost, as logarithms. What differs by
// less than equal does not.
const equal, atMost = 0.05, 0.15

// Least is how many times a harness has that is known well enough to speak for sisters.
const Least = 50

// Sister returns, of pools with the same types, that of the sister of a card which is most like it, among those with
// enough times in a timing: a device of the same architecture. It is nil without one. On 26 series of devices that are
// left out, the times of a sister lower the error of 7.0 % to 5.0.
func Sister(pools []*Pool, card Board, timing string) (best *Pool) {
	nearest := math.Inf(1)
	for _, p := range pools {
		units, dram := math.Abs(math.Log(p.Board.Units/card.Units)), math.Abs(math.Log(p.Board.DRAM/card.DRAM))
		is := min(units, dram) <= equal && units <= atMost
		if is && units+dram < nearest && p.Has(timing, Least) {
			best, nearest = p, units+dram
		}
	}
	return best
}

// Has reports whether a pool has a series in a timing of at least so many times.
func (p *Pool) Has(timing string, least int) bool {
	return slices.ContainsFunc(p.Series, func(s *residual.Series) bool {
		return s.Timing == timing && s.Times >= least
	})
}

// Beside returns a pool with the times of another as well.
func (p *Pool) Beside(other *Pool) *Pool {
	both := p.With(slices.Concat(p.Rows(), other.Rows()))
	both.Local = p.Local || other.Local
	return both
}

// With returns a pool with other series.
func (p *Pool) With(series []*residual.Series) *Pool {
	with := &Pool{Types: p.Types, Local: p.Local}
	with.once.Do(func() { with.Series = series })
	return with
}

// reach is how far times of a local pool say something, as a logarithm: up to the first fully, from the second on not.
var reach = [...]float64{0.1, 0.2}

// At is residual.At of the times of a pool.
func (p *Pool) At(q *residual.Problem) residual.Found {
	found := residual.At(p.Rows(), q)
	if p.Local && found.Nearest > reach[0] {
		found.Spread = 0
		found.Residual *= max(0, (reach[1]-found.Nearest)/(reach[1]-reach[0]))
	}
	return found
}

// IsLocal finds whether times of a pool say nothing of another N and K: without those of about its N and K, a time is
// farther from the prediction than the terms alone are. AITER's on the MI355X are, whose kernels for an N and K were
// tuned apart from others.
func (p *Pool) IsLocal() bool {
	const clear = 1.05
	q, _ := residual.Without("without-near")
	off, terms, times := 0.0, 0.0, 0
	for _, s := range p.Rows() {
		rows := s.Rows()
		for i := 0; i < len(rows); i += max(1, len(rows)/400) {
			r := rows[i]
			q.M, q.N, q.K, q.Timing, q.Layout = r.M, r.N, r.K, s.Timing, s.Layout
			off += math.Abs(math.Expm1(residual.At(p.Rows(), &q).Residual - r.Residual))
			terms += math.Abs(math.Expm1(-r.Residual))
			times++
		}
	}
	return times >= Least && off > clear*terms
}

// step is that in which residuals are stored, as logarithms: a third of the noise between neighbours. A time that is
// farther off than the ends of a byte is stored as the end.
const step = 0.01

// opened are the pools that were asked for, by their lines: models of one device, as what-ifs are, share them.
var opened sync.Map

// Of lists the pools of a device for a scheme and a release, all for empty names, and those of an architecture for its
// name and "@". A question that names no release is about the current one.
func Of(device, scheme, release string) (pools []*Pool) {
	if release == checked.AnyRelease {
		release = checked.Current
	}
	for rest := file; len(rest) > 0; {
		line, behind, _ := bytes.Cut(rest, []byte{'\n'})
		c := bytes.Split(line, []byte{'\t'})
		n, err := strconv.Atoi(string(c[len(c)-1]))
		if len(c) != 8 || err != nil || n > len(behind) {
			panic("nearby: times.bin is damaged") // a test reads it
		}
		p := &Pool{Device: string(c[0]), Scheme: string(c[2]), Release: string(c[3]), Types: string(c[4]),
			Local: string(c[5]) == "true"}
		p.packed, rest = behind[:n], behind[n:]
		for _, same := range [][2]string{{device, p.Device}, {scheme, p.Scheme}, {release, p.Release}} {
			if same[0] != "" && same[0] != same[1] &&
				(!strings.HasSuffix(same[0], "@") || !strings.HasPrefix(same[1], same[0])) {
				p = nil
				break
			}
		}
		if p == nil {
			continue
		}
		if same, there := opened.Load(string(line)); there {
			pools = append(pools, same.(*Pool))
			continue
		}
		for at, to := range map[int]any{1: &p.Board, 6: &p.Series} {
			if err := json.Unmarshal(c[at], to); err != nil {
				panic(fmt.Sprintf("nearby: %v", err))
			}
		}
		same, _ := opened.LoadOrStore(string(line), p)
		pools = append(pools, same.(*Pool))
	}
	return pools
}

// Rows returns the series with their rows, which the first call decodes.
func (p *Pool) Rows() []*residual.Series {
	p.once.Do(func() {
		if err := p.decode(); err != nil {
			panic(fmt.Sprintf("nearby: %s %s: %v", p.Device, p.Types, err))
		}
	})
	return p.Series
}

// decode reads, for each series, the count of its times, then how many bytes their sizes have, then the sizes, then a
// byte for each residual. Sizes are N, K and M, each less that of the time before; K and M from 0 behind a new N, and M
// from 0 behind a new K.
func (p *Pool) decode() error {
	text, err := io.ReadAll(flate.NewReader(bytes.NewReader(p.packed)))
	if err != nil {
		return err
	}
	next := func() (v int) {
		u, n := binary.Uvarint(text)
		if n <= 0 {
			err, text = io.ErrUnexpectedEOF, nil
			return 0
		}
		text = text[n:]
		return int(u)
	}
	for _, s := range p.Series {
		rows := make([]residual.Row, s.Times)
		var last residual.Row
		for i := range rows {
			r := residual.Row{N: last.N + next()}
			if r.N == last.N {
				r.K = last.K
			}
			if r.K += next(); r == (residual.Row{N: last.N, K: last.K}) {
				r.M = last.M
			}
			r.M += next()
			rows[i], last = r, r
		}
		if len(text) < len(rows) {
			return io.ErrUnexpectedEOF
		}
		for i := range rows {
			rows[i].Residual = step * float64(int8(text[i]))
		}
		text = text[len(rows):]
		s.Add(rows)
	}
	return err
}

// Encode writes pools as times.bin has them.
func Encode(pools []*Pool) ([]byte, error) {
	var out bytes.Buffer
	for _, p := range pools {
		var text []byte
		for _, s := range p.Series {
			rows := s.Rows()
			var last residual.Row
			for _, r := range rows {
				text = binary.AppendUvarint(text, uint64(r.N-last.N))
				if r.N != last.N {
					last.K, last.M = 0, 0
				}
				text = binary.AppendUvarint(text, uint64(r.K-last.K))
				if r.K != last.K {
					last.M = 0
				}
				text = binary.AppendUvarint(text, uint64(r.M-last.M))
				last = r
			}
			for _, r := range rows {
				text = append(text, byte(int8(max(min(math.Round(r.Residual/step), math.MaxInt8), math.MinInt8))))
			}
		}
		board, err := json.Marshal(p.Board)
		if err != nil {
			return nil, err
		}
		series, err := json.Marshal(p.Series)
		if err != nil {
			return nil, err
		}
		var packed bytes.Buffer
		z, err := flate.NewWriter(&packed, flate.BestCompression)
		if err == nil {
			_, err = z.Write(text)
		}
		if err == nil {
			err = z.Close()
		}
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&out, "%s\t%s\t%s\t%s\t%s\t%t\t%s\t%d\n", p.Device, board, p.Scheme, p.Release, p.Types, p.Local,
			series, packed.Len())
		out.Write(packed.Bytes())
	}
	return out.Bytes(), nil
}

// TypesOf names the types that cost the same as a type of operands.
func TypesOf(t gemm.DType) string {
	if t == gemm.FP16 || t == gemm.BF16 {
		return "16 bit"
	}
	return t.String()
}

// LayoutOf names types and storage. cuBLAS takes as long for B along N as along K in 16 bits, and so do the other
// libraries of NVIDIA's GPUs, which call it: docs/published.md has the figures.
func LayoutOf(l arch.Layout, nvidia bool) string {
	if nvidia && (l.Types.In == gemm.FP16 || l.Types.In == gemm.BF16) {
		l.BMajor = gemm.MajorK
	}
	return fmt.Sprintf("%s, A along %c, B along %c", l.Types.Text(), l.AMajor, l.BMajor)
}
