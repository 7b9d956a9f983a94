package dataset

import "github.com/origami-gemm/origami/core/gemm"

// Times returns the configurations that have a measured time of a problem, and the times in seconds. If the sweep has a
// launch order that all were measured at, the few that were measured at others as well are left out: they have no times
// at most sizes.
func (d *Dataset) Times(p gemm.Problem) (list []gemm.Config, times map[gemm.Config]float64) {
	times = map[gemm.Config]float64{}
	for _, m := range d.Sweep(p) {
		other := d.GroupM != 0 && m.Config.GroupM != d.GroupM
		if m.Status != OK || m.Library != "" || m.Median <= 0 || other {
			continue
		}
		t, again := times[m.Config]
		if !again {
			list = append(list, m.Config)
		}
		if !again || float64(m.Median) < t {
			times[m.Config] = float64(m.Median)
		}
	}
	return list, times
}
