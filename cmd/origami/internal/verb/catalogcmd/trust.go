package catalogcmd

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/ask/question"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/show"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/gemm"
)

// NewTrust returns the command that says what predictions rest on.
func NewTrust(f *session.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "trust",
		Short: "Say which predictions were checked, on what, and how far they are off",
		Long: "List what the predicted times of each device, kernel family and type were held against: the\n" +
			"evidence, the measured times, the median error, and the width of the 90 % intervals (high ÷ low),\n" +
			"narrowest and widest. The evidence is checked (times of the device), related (of another kind of\n" +
			"problem on it), sister (of other devices of the architecture) or unchecked (of other generations).\n" +
			"--arch, --kernel and --dtype choose, and --option counts, as in scheme=block128.",
		Example: "  origami trust --arch h200,mi300x\n  origami trust --dtype fp8\n  origami trust --arch b200 --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			rows, err := trusted(cmd.Context(), f)
			if err != nil {
				return err
			}
			dtypes := gemm.DTypes()
			if flag := cmd.Flags().Lookup("dtype"); flag.Changed {
				dtype, err := gemm.ParseDType(flag.Value.String())
				if err != nil {
					return diag.Within("--dtype", err)
				}
				dtypes = []gemm.DType{dtype}
			}
			key := show.Key[trust]
			return show.Write(f.Streams, f.Format(), ofTypes(rows, dtypes...), key("device"), key("kernel"),
				key("dtypes", "type").Or("any other"), key("evidence"),
				show.Number("times", func(r *trust) float64 { return float64(r.Times) }, digits.SixDigits),
				key("median_error", "median error"), show.Text("interval's width", func(r *trust) string {
					return fmt.Sprintf("%.2f–%.2f", r.Narrow, r.Wide)
				}), key("from"))
		},
	}
	cmd.Flags().String("dtype", "", "only of this element `TYPE` of A and B")
	cmd.Flags().String("kernel", "", "only of this kernel `FAMILY`")
	return cmd
}

// trust is what the times of one kind of prediction were held against.
type trust struct {
	Device   string        `json:"device"` // as `arch@device`, and the kernel family
	Kernel   string        `json:"kernel"`
	DTypes   []string      `json:"dtypes"`                       // the types of A and B, empty for all that have no row
	Evidence arch.Evidence `json:"evidence"`                     // as in `select`
	Times    int           `json:"times"`                        // how many were measured
	Error    ask.Number    `json:"median_error" unit:"fraction"` // of |predicted ÷ measured − 1|; `null` if unknown
	Narrow   float64       `json:"width_low"`                    // high ÷ low of the narrowest interval, and the widest
	Wide     float64       `json:"width_high"`
	From     string        `json:"from"` // the measurements, or how the intervals were found

	model  *arch.Description
	others bool // it is for all types without a row
}

func newTrust(d *arch.Description, u *arch.Uncertainty) trust {
	r := trust{Device: d.ID(), Kernel: u.Kernel, Evidence: d.EvidenceOf(u), Times: max(u.Checked.Times, u.Checked.Sizes),
		Error: ask.Number(cmp.Or(u.MedianError, math.NaN())), Narrow: math.Inf(1), model: d,
		From: cmp.Or(show.SetOf(&u.Checked), u.Source)}
	if r.Evidence == arch.EvidenceUnchecked {
		r.Times, r.From = 0, u.Source
	}
	for _, l := range u.Checked.Layouts {
		if name := l.Types.In.String(); r.predicts(l.Types.In) && !slices.Contains(r.DTypes, name) {
			r.DTypes = append(r.DTypes, name)
		}
	}
	r.others = len(u.Checked.Layouts) == 0
	for _, x := range u.Ranges {
		r.Narrow, r.Wide = min(r.Narrow, x.High/x.Low), max(r.Wide, x.High/x.Low)
	}
	return r
}

// merged adds a row, unless there is the same of other results, and makes one of all of another generation's times.
func merged(rows []trust, r trust) []trust {
	if slices.ContainsFunc(rows, func(o trust) bool {
		return o.model == r.model && o.Kernel == r.Kernel && o.Evidence == r.Evidence && o.From == r.From &&
			slices.Equal(o.DTypes, r.DTypes) && o.Narrow == r.Narrow && o.Wide == r.Wide
	}) {
		return rows
	}
	if r.Evidence == arch.EvidenceUnchecked && !r.others {
		r.From, _, _ = strings.Cut(r.From, ": ")
		for i := range rows {
			if o := &rows[i]; o.model == r.model && o.Kernel == r.Kernel && o.From == r.From {
				for _, t := range r.DTypes {
					if !slices.Contains(o.DTypes, t) {
						o.DTypes = append(o.DTypes, t)
					}
				}
				o.Narrow, o.Wide = min(o.Narrow, r.Narrow), max(o.Wide, r.Wide)
				return rows
			}
		}
	}
	return append(rows, r)
}

// predicts reports whether the model predicts kernels of the family for a type. Times of others may be among those it
// was held against.
func (r *trust) predicts(dtype gemm.DType) bool {
	p := gemm.New(1, 1, 1)
	p.DType = dtype
	return r.model.SupportsTypes(r.Kernel, &p) == nil
}

// ofTypes returns the rows that predictions of some types rest on: of each device and family, those that name one of
// them, and the one for all others if one is not named.
func ofTypes(rows []trust, dtypes ...gemm.DType) []trust {
	names := func(r *trust, dtype gemm.DType) bool { return slices.Contains(r.DTypes, dtype.String()) }
	return slices.DeleteFunc(slices.Clone(rows), func(r trust) bool {
		return !slices.ContainsFunc(dtypes, func(dtype gemm.DType) bool {
			if !r.others {
				return names(&r, dtype)
			}
			return r.predicts(dtype) && !slices.ContainsFunc(rows, func(o trust) bool {
				return o.model == r.model && o.Kernel == r.Kernel && names(&o, dtype)
			})
		})
	})
}

// trusted returns the rows of the devices that are asked for, or of all.
func trusted(ctx context.Context, f *session.Factory) (rows []trust, err error) {
	names := f.Settings.Arch
	if len(names) == 0 {
		manifests, err := f.Manifests(ctx)
		if err != nil {
			return nil, err
		}
		for _, a := range ask.Archs(manifests) {
			names = append(names, a.Arch+"@"+a.Device)
		}
	}
	targets, err := f.Targets(ctx, names, f.Settings.Device)
	if err != nil {
		return nil, err
	}
	sides, err := f.Sides(ctx, targets, &question.Search{}, false)
	if err != nil {
		return nil, err
	}
	for i := range sides {
		side := &sides[i]
		seen := map[string]bool{} // a model may be open once for each of its families, and describes all of them each time
		add := func(d *arch.Description) {
			for j := range d.Uncertainty {
				u := &d.Uncertainty[j]
				if !seen[d.Model] && len(u.Ranges) > 0 && (f.Settings.Kernel == "" || u.Kernel == f.Settings.Kernel) {
					rows = merged(rows, newTrust(d, u))
				}
			}
			seen[d.Model] = true
		}
		add(side.Describe())
		for _, other := range side.Others {
			a, err := other.Open(ctx)
			if err == nil {
				add(a.Describe())
			} else if diag.KindOf(err) != diag.Input {
				return nil, err
			}
		}
	}
	return rows, nil
}
