package gemm

import (
	"fmt"
	"sort"
	"strconv"
	"strings"

	"github.com/origami-gemm/origami/core/diag"
)

// Config is one kernel configuration. What the numbers mean in registers and shared memory is the kernel family's
// business: Kernel names it.
type Config struct {
	// BlockM, BlockN and BlockK are the tile that one CTA (workgroup) computes and the depth of one K step, in elements.
	BlockM, BlockN, BlockK int
	// GroupM is the launch-order group: how many rows of tiles are walked before the next column (GROUP_SIZE_M, WGM).
	// Zero means that phase two of the selection has not chosen it yet.
	GroupM int
	// NumWarps is the number of warps (wavefronts) per CTA.
	NumWarps int
	// NumStages is the requested depth of the software pipeline over K.
	NumStages int
	// SplitK is the number of CTAs that share one output tile's K loop.
	SplitK int
	// Kernel is the kernel family, for example "triton".
	Kernel string
}

// String formats as "128x256x64,warps=8,stages=2,group=1,split=1", the form that ParseConfig reads; a group that is not
// chosen yet is left out. The family is not part of it.
func (c Config) String() string {
	group := ""
	if c.GroupM != 0 {
		group = fmt.Sprintf(",group=%d", c.GroupM)
	}
	return fmt.Sprintf("%dx%dx%d,warps=%d,stages=%d%s,split=%d", c.BlockM, c.BlockN, c.BlockK, c.NumWarps, c.NumStages, group, c.SplitK)
}

// ParseConfig reads "BMxBNxBK[,warps=W][,stages=S][,group=G][,split=P]" over the defaults in base. All numbers must be
// at least 1.
func ParseConfig(s string, base Config) (Config, error) {
	const form = "write BMxBNxBK[,warps=W][,stages=S][,group=G][,split=P], for example 128x256x64,warps=8,stages=3,group=8,split=1"
	parts := strings.Split(s, ",")
	dims := strings.Split(parts[0], "x")
	if len(dims) != 3 {
		return Config{}, diag.Inputf("config %q does not start with a tile", s).Do(form)
	}
	c := base
	fields := map[string]*int{"warps": &c.NumWarps, "stages": &c.NumStages, "group": &c.GroupM, "split": &c.SplitK}
	for i, dst := range []*int{&c.BlockM, &c.BlockN, &c.BlockK} {
		if err := parsePositive(dims[i], dst); err != nil {
			return Config{}, diag.Inputf("config %q: block size %q %v", s, dims[i], err).Do(form)
		}
	}
	for _, part := range parts[1:] {
		key, value, _ := strings.Cut(part, "=")
		dst, ok := fields[key]
		if !ok {
			known := make([]string, 0, len(fields))
			for k := range fields {
				known = append(known, k)
			}
			sort.Strings(known)
			return Config{}, diag.Inputf("config %q: unknown or repeated key %q", s, key).Do("use each of %s at most once", strings.Join(known, ", "))
		}
		if err := parsePositive(value, dst); err != nil {
			return Config{}, diag.Inputf("config %q: %s=%s %v", s, key, value, err).Do(form)
		}
		delete(fields, key)
	}
	return c, nil
}

func parsePositive(s string, dst *int) error {
	v, err := strconv.Atoi(s)
	if err != nil {
		return fmt.Errorf("is not a whole number")
	}
	if v < 1 || v > MaxConfigNumber {
		return fmt.Errorf("is outside 1 to %d", MaxConfigNumber)
	}
	*dst = v
	return nil
}

// MaxConfigNumber bounds every number of a configuration. Problem.Validate counts on it when it rules out overflow.
const MaxConfigNumber = 1 << 12

// Validate reports a number outside 1 to MaxConfigNumber; GroupM may be 0. Models divide by these numbers, so they check
// what they are given. It costs a nanosecond.
func (c *Config) Validate() error {
	// Less one, a number in range has no bits above those of MaxConfigNumber − 1, and a number below 1 has them all.
	if uint(c.BlockM-1)|uint(c.BlockN-1)|uint(c.BlockK-1)|uint(c.NumWarps-1)|uint(c.NumStages-1)|uint(c.SplitK-1) < MaxConfigNumber &&
		uint(c.GroupM) <= MaxConfigNumber {
		return nil
	}
	return diag.Inputf("config %s has a number outside 1 to %d", *c, MaxConfigNumber).Do("give whole numbers in that range")
}

// Intensity returns the arithmetic intensity of one tile step in operations per element moved:
// 2·m·n·k / (m·k + n·k + m·n). Dividing by the element size gives FLOP per byte; a constant factor does not change an
// ordering, so selectors use it as it is.
func (c Config) Intensity() float64 {
	m, n, k := c.BlockM, c.BlockN, c.BlockK
	return float64(2*m*n*k) / float64(m*k+n*k+m*n)
}
