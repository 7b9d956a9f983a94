package gemm

import (
	"fmt"
	"slices"
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
	// NumWarps is the number of warps (wavefronts) per CTA. NumStages is the requested depth of the software pipeline
	// over K. Zero means that nobody knows: the kernel is of a vendor's library, and only its tile is modelled (see
	// ValidateKnown).
	NumWarps, NumStages int
	// SplitK is the number of CTAs that share one output tile's K loop.
	SplitK int
	// Axes are the values on the axes that the kernel family declares beyond these numbers.
	Axes Axes
	// Kernel is the kernel family, for example "triton".
	Kernel string
}

// String formats as "128x256x64 w8 s2 g1 k4 cluster=2x1": the tile, warps, stages, group and split, then the axes. What
// is not chosen yet or unknown is left out, and so are a split of 1 and an axis at its default. ParseConfig reads it.
// The family is not part of it.
func (c Config) String() string {
	v := c.Numbers()
	b := make([]byte, 0, 64)
	for i := range tileFields {
		if i > 0 {
			b = append(b, 'x')
		}
		b = strconv.AppendInt(b, int64(v[i]), 10)
	}
	for _, i := range textOrder {
		if v[i] == 0 && (fields[i].Optional || fields[i].MayBeUnknown) || v[i] == 1 && i == splitField {
			continue
		}
		b = append(b, ' ', fields[i].Letter)
		b = strconv.AppendInt(b, int64(v[i]), 10)
	}
	for name, value := range c.Axes.All() {
		b = append(append(append(append(b, ' '), name...), '='), value...)
	}
	return string(b)
}

const configForm = "write BMxBNxBK, then w for warps, s for stages, g for group and k for split, as in " +
	"128x256x64 w8 s3 g8 k1"

// ParseConfig reads what Config.String writes, over the defaults in base; a split that base leaves open is 1. The parts
// are separated by blanks or commas. Numbers may have long names too, as in
// "128x256x64,warps=8,stages=3,group=8,split=1". declared are the axes of the configuration's family. All numbers must
// be at least 1.
func ParseConfig(s string, base Config, declared ...Axis) (Config, error) {
	parts := strings.FieldsFunc(s, func(r rune) bool { return r == ' ' || r == ',' })
	var dims []string
	if len(parts) > 0 {
		dims = strings.Split(parts[0], "x")
	}
	if len(dims) != tileFields {
		return Config{}, diag.Inputf("config %q does not start with a tile", s).Do(configForm)
	}
	c := base
	v := c.Numbers()
	for i := range tileFields {
		if err := parsePositive(dims[i], &v[i]); err != nil {
			return Config{}, diag.Inputf("config %q: block size %q %v", s, dims[i], err).Do(configForm)
		}
	}
	left := make([]string, 0, len(textOrder)+len(declared)) // keys that have not been used
	for _, i := range textOrder {
		left = append(left, fields[i].Key)
	}
	for i := range declared {
		left = append(left, declared[i].Name)
	}
	for _, part := range parts[1:] {
		key, value := cutPart(part)
		at := slices.Index(left, key)
		if at < 0 {
			slices.Sort(left)
			return Config{}, diag.Inputf("config %q: unknown or repeated key %q", s, key).
				Do("use each of %s at most once", strings.Join(left, ", "))
		}
		left = slices.Delete(left, at, at+1)
		if i := slices.IndexFunc(fields[:], func(f Field) bool { return f.Key == key }); i >= 0 {
			if err := parsePositive(value, &v[i]); err != nil {
				return Config{}, diag.Inputf("config %q: %s=%s %v", s, key, value, err).Do(configForm)
			}
		} else if err := c.SetAxis(declared, key, value); err != nil {
			return Config{}, diag.Within(fmt.Sprintf("config %q", s), err)
		}
	}
	if v[splitField] == 0 {
		v[splitField] = 1
	}
	c.SetNumbers(v)
	return c, nil
}

// cutPart returns the key and the value of "w8", "warps=8" or "cluster=2x1".
func cutPart(part string) (key, value string) {
	if len(part) > 1 && '0' <= part[1] && part[1] <= '9' {
		for _, i := range textOrder {
			if fields[i].Letter == part[0] {
				return fields[i].Key, part[1:]
			}
		}
	}
	key, value, _ = strings.Cut(part, "=")
	return key, value
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

// Intensity returns the arithmetic intensity of one tile step in operations per element moved:
// 2·m·n·k / (m·k + n·k + m·n). Dividing by the element size gives FLOP per byte; a constant factor does not change an
// ordering, so selectors leave the division out.
func (c Config) Intensity() float64 {
	m, n, k := c.BlockM, c.BlockN, c.BlockK
	return float64(2*m*n*k) / float64(m*k+n*k+m*n)
}
