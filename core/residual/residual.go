// Package residual says by how much the times of a problem differ from a model's predictions, as measured times near
// the problem show. A residual is log(measured ÷ predicted). It is a function of (log M, log N, log K), and a sum of a
// part that all times of a kernel family on a device share, and of parts of its own for each timing, source and
// layout. The prediction is the mean of a Gaussian process given the nearest measured residuals:
//
//	residual = c · C⁻¹ · r
//	spread²  = (variance − c · C⁻¹ · c) · (nu + r · C⁻¹ · r) / (nu + n)
//
// with r of n measured times, their covariances C, and c those with the problem. Near times count for much, far ones
// for little, and none leave the model as it is. The last factor widens the spread where measured times contradict each
// other (Student's t with nu degrees of freedom for an unknown scale). C. E. Rasmussen and C. K. I. Williams, Gaussian
// Processes for Machine Learning, 2006, sections 2.2 and 9.9.
//
// Nothing is trained at run time. The numbers below were chosen on the published times of vendors' libraries (764,777,
// of 85 series with at least 200), each predicted from the others; the errors are flat around them:
// `go test ./plugins/library/nearby -run Folds -v` prints them.
package residual

import (
	"cmp"
	"math"
	"slices"
)

const (
	// near and wide are the variances of the two parts, whose correlations fall by e within the lengths, as logarithms of
	// sizes. noise is the variance between neighbours; a series of few times is trusted less, by few ÷ times.
	nearVariance, nearLength = 0.006, 0.5
	wideVariance, wideLength = 0.004, 4.0
	noise, few               = 0.001, 0.03
	variance                 = nearVariance + wideVariance
	nu                       = 8

	// The correlation of the residuals of two series of a timing: in another layout or type of one source, and in another
	// source. Times of another timing do not count: with correlations of 0 to 0.2, the error on a source that is left out
	// is 7.2 to 7.3 %, and the terms' own is 7.2 %.
	otherLayout, otherSource = 0.6, 0.3
	// Kernels for two storage orders have little in common. Triton's picks of a sweep on an H200 without a transposed
	// matrix, which times with a transposed B correct, are off by 5.2, 5.2, 5.3 and 6.0 % with 0, 0.1, 0.3 and 0.6, and 13
	// sizes in a running model by 25.7, 24.9, 23.3 and 21.2 %.
	otherStorage = 0.1
	// Who asks for a timing asks for the harness of its only source, or for one of several.
	oneSource, oneOfSources = 0.95, 0.5

	// most is how many measured times count.
	most = 8

	// told is the share of the variance that measured times have to explain for the spread to say more than the model's
	// own error does.
	told = 0.2
)

// Series is what many times of a kernel family on a device have in common.
type Series struct {
	Source string `json:"source"`
	Timing string `json:"timing"` // what a time is of
	Layout string `json:"layout"` // types and storage of the matrices, as the maker of the rows spells it
	// Storage is which matrices are transposed, of kernels that were written for it: empty for the kernels of a library.
	Storage string `json:"-"`
	Times   int    `json:"times"`

	groups []group
}

// group is the times of an N and a K, by M.
type group struct {
	n, k  float64 // logarithms
	times []time
}

type time struct {
	m        float64 // logarithm
	residual float64
}

// Rows lists the times, by N, K and M.
func (s *Series) Rows() (rows []Row) {
	size := func(log float64) int { return int(math.Round(math.Exp(log))) }
	for i := range s.groups {
		for _, t := range s.groups[i].times {
			rows = append(rows, Row{size(t.m), size(s.groups[i].n), size(s.groups[i].k), t.residual})
		}
	}
	return rows
}

// Row is a measured time.
type Row struct {
	M, N, K  int
	Residual float64 // log(measured ÷ predicted)
}

// Add gives a series its times, in any order.
func (s *Series) Add(rows []Row) {
	order := func(a, b Row) int { return cmp.Or(a.N-b.N, a.K-b.K, a.M-b.M) }
	if !slices.IsSortedFunc(rows, order) {
		slices.SortStableFunc(rows, order)
	}
	s.Times, s.groups = len(rows), nil
	for i, r := range rows {
		if i == 0 || r.N != rows[i-1].N || r.K != rows[i-1].K {
			s.groups = append(s.groups, group{n: log(r.N), k: log(r.K)})
		}
		g := &s.groups[len(s.groups)-1]
		g.times = append(g.times, time{log(r.M), r.Residual})
	}
}

// Problem is what is asked about, and which measured times do not count.
type Problem struct {
	M, N, K        int
	Timing, Layout string
	Storage        string
	// Source is whose harness is asked about, empty for no particular one. Times of others count for less then.
	Source string

	// These leave times out, to score the others: WithoutSame the problem's own, Within all times with N and K both within
	// this factor.
	WithoutSame bool
	Within      float64
}

// Found is what measured times say of a problem.
type Found struct {
	// Residual is log(measured ÷ predicted), and Spread its standard deviation, 0 if the times say too little of it: Told
	// is the share of its variance that they explain.
	Residual, Spread, Told float64
	// Times is how many count, Nearest the Euclidean distance of the nearest in logarithms of M, N and K, and Series its
	// series.
	Times   int
	Nearest float64
	Series  *Series
}

// hit is a time near a problem. Others of its distance come first if they are of the source that is asked about: it is
// behind them by the length within which the correlation falls by as much.
type hit struct {
	series           *Series
	of               *group
	time             time
	distance, behind float64
}

func (h *hit) rank() float64 { return h.distance + h.behind }

// nearest are the nearest times found so far, in order.
type nearest struct {
	hits [most]hit
	n    int
}

func (n *nearest) farthest() float64 {
	if n.n < most {
		return math.Inf(1)
	}
	return n.hits[n.n-1].rank()
}

func (n *nearest) add(h hit) {
	if n.n < most {
		n.n++
	}
	i := n.n - 1
	for ; i > 0 && n.hits[i-1].rank() > h.rank(); i-- {
		n.hits[i] = n.hits[i-1]
	}
	n.hits[i] = h
}

// At returns what the times of series of one kernel family on one device say of a problem. It allocates nothing.
func At(all []*Series, p *Problem) Found {
	var to nearest
	m, n, k := log(p.M), log(p.N), log(p.K)
	of, several := "", false
	for _, s := range all {
		if s.Timing == p.Timing {
			several = several || of != "" && of != s.Source
			of = s.Source
			s.near(&to, p, m, n, k)
		}
	}
	hits := to.hits[:to.n]
	if len(hits) == 0 {
		return Found{}
	}
	found := Found{Times: len(hits), Nearest: hits[0].distance, Series: hits[0].series}
	asked := oneSource
	if several {
		asked = oneOfSources
	}
	found.solve(hits, p, asked)
	for _, x := range []*float64{&found.Nearest, &found.Residual, &found.Spread, &found.Told} {
		*x = alike(*x)
	}
	return found
}

// alike rounds what platforms compute with other last bits: logarithms and exponentials, and sums of fused products.
// They choose the same times then, and answer the same.
func alike(x float64) float64 { return math.Round(x*(1<<30)) / (1 << 30) }

// Share is what a residual adds to a time ÷ the time: exp(residual) − 1.
func Share(residual float64) float64 { return alike(math.Expm1(residual)) }

func log(size int) float64 { return alike(math.Log(float64(size))) }

// near adds the nearest times of a series.
func (s *Series) near(to *nearest, p *Problem, m, n, k float64) {
	within, with := math.Log(p.Within), s.kin(p.Storage)
	if p.Source != "" && s.Source != p.Source {
		with *= otherSource
	}
	behind := alike(-nearLength * math.Log(with))
	for i := range s.groups {
		g := &s.groups[i]
		dn, dk := math.Abs(g.n-n), math.Abs(g.k-k)
		if p.Within > 0 && dn < within && dk < within {
			continue
		}
		across := float64(dn*dn) + float64(dk*dk)
		if far := to.farthest() - behind; far <= 0 || across >= far*far {
			continue
		}
		at, _ := slices.BinarySearchFunc(g.times, m, func(t time, m float64) int {
			if t.m < m {
				return -1
			}
			return 1
		})
		use := func(j int) bool {
			t := g.times[j]
			dm := t.m - m
			d := math.Sqrt(across + float64(dm*dm))
			if d+behind >= to.farthest() {
				return false
			}
			if d > 0 || !p.WithoutSame {
				to.add(hit{s, g, t, d, behind})
			}
			return true
		}
		for j := at; j < len(g.times) && use(j); j++ {
		}
		for j := at - 1; j >= 0 && use(j); j-- {
		}
	}
}

// covariance is of the residuals at a distance.
func covariance(distance float64) float64 {
	return nearVariance*math.Exp(-distance/nearLength) + wideVariance*math.Exp(-distance/wideLength)
}

// relation is how the residuals of two series go together.
func relation(a, b *Series) float64 {
	switch {
	case a == b:
		return 1
	case a.Source != b.Source:
		return otherSource * a.kin(b.Storage)
	case a.Storage != b.Storage && a.Layout == b.Layout:
		return otherStorage
	}
	return otherLayout * a.kin(b.Storage)
}

// kin is how the residuals of a series go together with those in a storage order.
func (s *Series) kin(storage string) float64 {
	if s.Storage == storage {
		return 1
	}
	return otherStorage
}

// solve finds the mean and the spread, with the Cholesky factor of the covariances. asked is how the residuals of the
// timing asked for go together with what is asked.
func (f *Found) solve(hits []hit, p *Problem, asked float64) {
	var c [most][most]float64
	var r, u [most]float64
	explained, surprise := 0.0, 0.0
	for i := range hits {
		a := &hits[i]
		for j := range i + 1 {
			b := &hits[j]
			m, n, k := a.time.m-b.time.m, a.of.n-b.of.n, a.of.k-b.of.k
			sum := covariance(math.Sqrt(float64(m*m)+float64(n*n)+float64(k*k))) * relation(a.series, b.series)
			if i == j {
				sum += noise + few/float64(a.series.Times)
			}
			for l := range j {
				sum -= c[i][l] * c[j][l]
			}
			if i == j {
				c[i][i] = math.Sqrt(sum)
			} else {
				c[i][j] = sum / c[j][j]
			}
		}
		with := asked
		switch p.Source {
		case "":
		case a.series.Source:
			with = 1
		default:
			with = otherSource
		}
		if a.series.Layout != p.Layout {
			with *= otherLayout
		}
		with *= a.series.kin(p.Storage)
		r[i], u[i] = a.time.residual, covariance(a.distance)*with
		for l := range i {
			r[i] -= c[i][l] * r[l]
			u[i] -= c[i][l] * u[l]
		}
		r[i] /= c[i][i]
		u[i] /= c[i][i]
		f.Residual += r[i] * u[i]
		explained += u[i] * u[i]
		surprise += r[i] * r[i]
	}
	if f.Told = explained / variance; f.Told >= told {
		f.Spread = math.Sqrt((variance + noise - explained) * (nu + surprise) / (nu + float64(len(hits))))
	}
}
