package stats

import (
	"cmp"
	"math"
	"slices"
)

// Residual is the size of the error of one prediction, at least 0, and the kind of prediction that it was.
type Residual struct {
	Value float64
	Kind  int
}

// Conformal finds limits below which the residuals of a new cluster lie with a given probability.
//
// Residuals come in clusters, here the kernels of one GEMM size. The residuals of a cluster have errors in common,
// so the clusters are exchangeable and not the residuals: ten thousand residuals of forty sizes are forty
// observations. Each cluster has the same weight, shared by its residuals.
//
// Residuals of different kinds may have different limits. A kind lists its groups, from the most specific to the most
// general, and uses the first in which enough clusters have residuals.
type Conformal struct {
	// groups are the groups of each kind, minClusters the least number of clusters of every group but a kind's last.
	groups      [][]int
	numGroups   int
	minClusters int
	// sorted are the residuals of all clusters in ascending order.
	sorted   []weighted
	clusters [][]weighted
}

type weighted struct {
	Residual
	weight  float64
	cluster int
}

// NewConformal prepares residuals by cluster. groups[kind] lists the groups of a kind.
func NewConformal(clusters [][]Residual, groups [][]int, minClusters int) *Conformal {
	c := &Conformal{groups: groups, minClusters: minClusters, clusters: make([][]weighted, len(clusters))}
	for _, list := range groups {
		c.numGroups = max(c.numGroups, 1+slices.Max(list))
	}
	for i, residuals := range clusters {
		for _, r := range residuals {
			c.clusters[i] = append(c.clusters[i], weighted{r, 1 / float64(len(residuals)), i})
		}
		c.sorted = append(c.sorted, c.clusters[i]...)
	}
	slices.SortFunc(c.sorted, func(a, b weighted) int { return cmp.Compare(a.Value, b.Value) })
	return c
}

// Clusters returns the number of clusters that have residuals.
func (c *Conformal) Clusters() int {
	n := 0
	for _, residuals := range c.clusters {
		if len(residuals) > 0 {
			n++
		}
	}
	return n
}

// Limits returns the limit of every group and the group that each kind uses. alpha is the share of residuals that
// may lie above: 0.1 for limits at 90 %.
//
//  1. The limit of a group is its 1 − α quantile.
//  2. Each cluster in turn is left out, and each of its residuals scored by how far it lies above the limit of the
//     other clusters, negative if it lies below.
//  3. All limits rise by the (1 − α)(K+1)/K quantile of these scores, where K is the number of clusters, but not
//     below 0.
//
// A residual of a new cluster is then below its limit with a probability of about 1 − α, averaged over clusters. Step 3
// takes quantiles over other limits than the ones it raises, as the jackknife+ does, at the cost of a few percent of
// coverage at worst.
//
// References: R. F. Barber, E. J. Candès, A. Ramdas, R. J. Tibshirani, "Predictive inference with the jackknife+",
// Annals of Statistics 49 (2021) 486–507; Y. Romano, E. Patterson, E. Candès, "Conformalized quantile regression",
// NeurIPS 2019; R. Dunn, L. Wasserman, A. Ramdas, "Distribution-free prediction sets for two-layer hierarchical
// models", JASA 118 (2023) 2491–2502.
func (c *Conformal) Limits(alpha float64) (limits []float64, used []int) {
	limits, used = c.Quantiles(alpha)
	var above []Weighted // Value is the score
	for i, residuals := range c.clusters {
		if len(residuals) == 0 {
			continue
		}
		others, groups := c.quantiles(alpha, i)
		for _, r := range residuals {
			above = append(above, Weighted{r.Value - others[groups[r.Kind]], r.weight})
		}
	}
	if len(above) == 0 {
		return limits, used
	}
	rise := UpperQuantile(above, (1-alpha)*float64(c.Clusters()+1))
	for g := range limits {
		limits[g] = max(limits[g]+rise, 0)
	}
	return limits, used
}

// Quantiles returns the limits of step 1 of Limits alone.
func (c *Conformal) Quantiles(alpha float64) (limits []float64, used []int) {
	const none = -1
	return c.quantiles(alpha, none)
}

// Weighted is a value with its weight.
type Weighted struct{ Value, Weight float64 }

// UpperQuantile sorts values and returns the least one such that the values up to it have at least the given weight. It
// is the largest value if all together have less, and 0 if there are none.
func UpperQuantile(values []Weighted, weight float64) float64 {
	slices.SortFunc(values, func(a, b Weighted) int { return cmp.Compare(a.Value, b.Value) })
	sum, last := 0.0, 0.0
	for _, v := range values {
		last = v.Value
		if sum += v.Weight; sum >= weight*(1-1e-12) {
			break
		}
	}
	return last
}

// quantiles returns the limit of every group with one cluster left out, and the group that each kind uses. A group
// without residuals has a limit of NaN.
func (c *Conformal) quantiles(alpha float64, leftOut int) (limits []float64, used []int) {
	total, clusters := c.weigh(leftOut)
	limits = make([]float64, c.numGroups)
	for g := range limits {
		limits[g] = math.NaN()
	}
	sum := make([]float64, c.numGroups)
	for i := range c.sorted {
		r := &c.sorted[i]
		if r.cluster == leftOut {
			continue
		}
		for _, g := range c.groups[r.Kind] {
			if sum[g] < total[g]*(1-alpha) {
				limits[g] = r.Value
			}
			sum[g] += r.weight
		}
	}
	used = make([]int, len(c.groups))
	for kind, groups := range c.groups {
		used[kind] = groups[len(groups)-1]
		for _, g := range groups {
			if clusters[g] >= c.minClusters {
				used[kind] = g
				break
			}
		}
	}
	return limits, used
}

// weigh returns the weight of every group and the number of clusters that have residuals in it, with one cluster
// left out.
func (c *Conformal) weigh(leftOut int) (total []float64, clusters []int) {
	total, clusters = make([]float64, c.numGroups), make([]int, c.numGroups)
	counted := make([]int, c.numGroups) // the last cluster that was counted, plus 1
	for i, residuals := range c.clusters {
		if i == leftOut {
			continue
		}
		for _, r := range residuals {
			for _, g := range c.groups[r.Kind] {
				total[g] += r.weight
				if counted[g] != i+1 {
					counted[g] = i + 1
					clusters[g]++
				}
			}
		}
	}
	return total, clusters
}
