// Package target names the machines that PTX is written for: a compute capability, and the features beyond it.
package target

import (
	"fmt"
	"strconv"
	"strings"
)

// Target is a PTX target, as the directive .target and the compiler's -arch name it (PTX ISA, "PTX Module Directives:
// .target").
type Target struct {
	// CC is the compute capability times ten: 90 for 9.0.
	CC int
	// Suffix is ArchFeatures or FamilyFeatures, or 0 for neither.
	Suffix byte
}

// The suffixes.
const (
	// ArchFeatures adds the instructions of this compute capability alone, such as wgmma of sm_90a. Code for such a
	// target runs on no other.
	ArchFeatures = 'a'
	// FamilyFeatures adds the instructions that all later capabilities of the same major version have too, such as
	// those of sm_100f on sm_103.
	FamilyFeatures = 'f'
)

// Parse reads "sm_90a", and "sm90a" as well, which is how device files write it.
func Parse(s string) (Target, error) {
	text, ok := strings.CutPrefix(s, "sm")
	digits := strings.TrimPrefix(text, "_")
	var t Target
	if n := len(digits); n > 0 && (digits[n-1] == ArchFeatures || digits[n-1] == FamilyFeatures) {
		t.Suffix, digits = digits[n-1], digits[:n-1]
	}
	cc, err := strconv.ParseUint(digits, 10, 16)
	if !ok || err != nil || cc < 10 || digits[0] == '0' {
		return Target{}, fmt.Errorf("%q is not a target such as sm_90 or sm_90a", s)
	}
	t.CC = int(cc)
	return t, nil
}

// String returns the target as PTX writes it: "sm_90a".
func (t Target) String() string {
	s := "sm_" + strconv.Itoa(t.CC)
	if t.Suffix != 0 {
		s += string(rune(t.Suffix))
	}
	return s
}

// Covers reports whether code for t may use an instruction whose lowest target is least. A plain minimum is met by
// every later compute capability, one with ArchFeatures by itself alone, one with FamilyFeatures by later
// capabilities of the same major version that have FamilyFeatures or ArchFeatures.
func (t Target) Covers(least Target) bool {
	switch least.Suffix {
	case 0:
		return t.CC >= least.CC
	case FamilyFeatures:
		return t.Suffix != 0 && t.CC >= least.CC && t.CC/10 == least.CC/10
	default:
		return t == least
	}
}

// EmulatesFP8 reports whether mma.sync takes fp8 operands on the target, which it does from sm_89 on, but the hardware
// has them only for other matrix instructions: wgmma on sm_90, tcgen05 on sm_100 to sm_110. The assembler then replaces
// each mma.sync by conversions, multiplications of fp16 and separate additions (seen with ptxas 13.0).
func (t Target) EmulatesFP8() bool { return t.CC >= 90 && t.CC < 120 }

// MultipliesMatrices reports whether a target has the matrix instructions and asynchronous copies of the kernels here.
func (t Target) MultipliesMatrices() bool { return t.CC >= 80 }

// HasFP8 reports whether mma.sync takes fp8.
func (t Target) HasFP8() bool { return t.CC >= 89 }

// PTX returns the first version of the PTX ISA, times ten, that knows the target. Source: PTX ISA, section ".target",
// table "PTX Release History".
func (t Target) PTX() int {
	version := 60
	for _, first := range [...]struct{ cc, ptx int }{
		{75, 63}, {80, 70}, {86, 71}, {87, 74}, {89, 78}, {100, 86}, {103, 88}, {110, 90}, {120, 87}, {121, 88},
	} {
		if t.CC >= first.cc {
			version = first.ptx
		}
	}
	switch t.Suffix {
	case ArchFeatures:
		return max(version, 80)
	case FamilyFeatures:
		return max(version, 88)
	default:
		return version
	}
}
