// Package comparecmd is `origami compare`: what each of several architectures makes of the same problems.
package comparecmd

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/ask/models"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/server"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/show"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/score"
	"github.com/origami-gemm/origami/plugins/library/published"
)

// Options are what the command line says.
type Options struct {
	Factory *session.Factory
	Query   session.ProblemFlags
	Terms   bool `json:"terms" help:"show every term of the models"`
	// Price is in dollars per hour, Watts in watts.
	Price, Watts []string
}

// New returns the command.
func New(f *session.Factory) *cobra.Command {
	o := &Options{Factory: f}
	cmd := &cobra.Command{
		Use:   "compare --arch ARCH,ARCH… -m SIZE -n SIZE -k SIZE",
		Short: "Put several architectures side by side for one problem or many",
		Long: "Put what each architecture reaches side by side: the time of its vendor's library, or where no model\n" +
			"has the library, of the best kernel. Other ways to run it stand below, and a faster one is named.\n" +
			"--kernel takes one family for all, --model one model. A model that only ranks kernels shows cycles.\n\n" +
			"An architecture may have options and hardware numbers of its own: --arch mi300x:release=early,h200\n" +
			"or --arch h200,h200:clock=1.5GHz,num_sms=66. With --problems there is a row per problem, and then\n" +
			"who wins how often and by how much. If one architecture fails, the others still answer.",
		Example: `  origami compare --arch h200,mi300x -m 4096 -n 4096 -k 4096 --dtype bf16
  origami compare --arch h200,h200:clock=1.2GHz -m 8192 -n 8192 -k 8192
  origami compare --arch h100,mi300x --problems shapes.csv --price h100=2.5,mi300x=2
  origami compare --arch sm90@h200,gfx942 -m 8192 -n 8192 -k 8192 --trans-b --json`,
		RunE: func(cmd *cobra.Command, _ []string) error { return Run(cmd.Context(), o) },
	}
	flags := cmd.Flags()
	o.Query.Register(flags, true)
	session.Register(flags, o)
	flags.StringSliceVar(&o.Price, "price", nil, "dollars per hour, as `ARCH=NUMBER,...`: adds the work per dollar")
	flags.StringSliceVar(&o.Watts, "watts", nil,
		"watts, as `ARCH=NUMBER,...`, or tdp for the device files' own: adds the work per joule")
	return cmd
}

// Served is the question to a server.
var Served = server.Endpoint{Name: "compare", Command: New, Many: true, Sides: true}

// Run answers. When sides fail, the exit code is 3 if a plugin is to blame and the first failure's otherwise.
func Run(ctx context.Context, o *Options) error {
	asked, err := o.Query.Read(ctx, o.Factory)
	if err != nil {
		return err
	}
	defer asked.Close()
	sides, common, err := open(ctx, o)
	if err != nil {
		return err
	}
	list, err := asked.List()
	if err != nil {
		return err
	}
	many, format := o.Query.Problems != "", o.Factory.Format()
	ways := !many && (format == show.JSON || format == show.Table)
	done, stop := show.Work(o.Factory.Streams, "predicting", len(sides)*len(list))
	rows, err := ask.Compare(ctx, sides, list, ways, done)
	stop()
	if err != nil {
		return err
	}
	for i := range rows {
		rows[i].Named = named
	}
	c := &comparison{sides: sides, rows: rows, common: common, labels: asked.Labels(), dollars: len(o.Price) > 0,
		joules: len(o.Watts) > 0, many: many, terms: o.Terms}
	failure := c.reportFailures(o.Factory.Streams, asked.Failures)
	return cmp.Or(c.write(o.Factory.Streams, format), failure)
}

// comparison is what several architectures make of the same problems.
type comparison struct {
	sides  []ask.Contender
	rows   []ask.Contest
	labels []string // the names of the problems' labels
	// common is the best model that all sides have, empty if they have none in common.
	common string
	// dollars and joules say that the user gave prices and watts, many that the problems come from a file, and terms that
	// all terms are asked for.
	dollars, joules, many, terms bool
}

// open opens the sides, and returns the model that all of them have. What is wrong with a side is in it.
func open(ctx context.Context, o *Options) (sides []ask.Contender, common string, err error) {
	f := o.Factory
	targets, err := f.Targets(ctx, f.Settings.Arch, f.Settings.Device)
	if err != nil {
		return nil, "", err
	}
	if err := checkTargets(targets); err != nil {
		return nil, "", err
	}
	o.Query.Reach(targets, o.Query.Invariant)
	sides = make([]ask.Contender, len(targets))
	var group ask.Group
	for i := range targets {
		group.Go(func() {
			one, err := f.OpenSide(ctx, &targets[i], &o.Query.Search, o.Query.Invariant)
			one.Found, one.Err = targets[i], err
			sides[i] = one
		})
	}
	group.Wait()
	for i := range sides {
		if s := &sides[i]; s.Err == nil {
			f.WarnUnused(&s.Found, s.Model.Describe())
		}
	}
	err = Assign("--price", o.Price, sides, func(s *ask.Contender, perHour float64) { s.Dollars = perHour / 3600 })
	if err == nil {
		err = Assign("--watts", o.Watts, sides, func(s *ask.Contender, watts float64) { s.Watts = watts })
	}
	return sides, models.Common(targets), err
}

// checkTargets refuses what is no comparison.
func checkTargets(targets []models.Found) error {
	if len(targets) < 2 {
		other := session.ExampleDevice
		if targets[0].Device.ID == other {
			other = session.OtherDevice
		}
		return diag.Inputf("compare needs at least two architectures, and one is given").At("--arch").
			Do("add another, as in --arch %s,%s", targets[0].Named, other)
	}
	for i := range targets {
		for j := range i {
			if targets[i].Label() == targets[j].Label() {
				return diag.Inputf("%s is given twice, which compares it with itself", targets[i].Label()).At("--arch").
					Do("name another, or change a hardware number of one, as in --arch %[1]s,%[1]s:clock=1.2GHz",
						targets[i].Named)
			}
		}
	}
	return nil
}

// reportFailures tells the user which sides failed. The error that it returns carries the exit code.
func (c *comparison) reportFailures(s *iostreams.Streams, rows *session.Failures) error {
	var failure error
	c.faults(func(err error) {
		s.Report(err)
		if failure == nil || diag.KindOf(err) == diag.Plugin && diag.KindOf(failure) != diag.Plugin {
			failure = err
		}
	})
	unread := rows.Err()
	if failure == nil {
		return unread
	}
	return &iostreams.Reported{Err: failure}
}

// faults tells which sides failed, and where they have no answer.
func (c *comparison) faults(tell func(error)) {
	for i := range c.sides {
		if err := c.sides[i].Err; err != nil {
			if label := c.sides[i].Label(); !strings.HasPrefix(err.Error(), "--arch ") {
				err = diag.Within(label, err)
			}
			tell(err)
			continue
		}
		for j := range c.rows {
			if err := c.rows[j].Answers[i].Err; err != nil {
				tell(diag.Within(c.rows[j].Where, diag.Within(c.sides[i].Label(), err)))
			}
		}
	}
}

// fromDevice is the word for the number of the device file.
const fromDevice = "tdp"

// Assign tells each side the positive number that a flag has for it, as ARCH=NUMBER. The word tdp stands for the
// numbers of the device files.
func Assign(flag string, words []string, sides []ask.Contender, set func(*ask.Contender, float64)) error {
	for _, word := range words {
		if flag == "--watts" && word == fromDevice {
			for i := range sides {
				if s := &sides[i]; s.Err == nil {
					tdp, _ := hw.Set(s.Model.Describe().Params).Lookup(fromDevice)
					set(s, tdp.Value)
				}
			}
			continue
		}
		name, number, ok := strings.Cut(word, "=")
		v, err := strconv.ParseFloat(number, 64)
		if !ok || name == "" || err != nil || !(v > 0 && v < 1e12) {
			return diag.Inputf("%q is not ARCH=NUMBER", word).At("%s", flag).
				Do("write positive numbers, as in h200=2.5,mi300x=2")
		}
		found := false
		names := make([]string, len(sides))
		for i := range sides {
			if names[i] = sides[i].Called(); goesBy(&sides[i].Found, name) {
				set(&sides[i], v)
				found = true
			}
		}
		if !found {
			return diag.Inputf("no architecture of the comparison is called %q", name).At("%s %s", flag, word).
				Do("use %s", strings.Join(names, ", "))
		}
	}
	return nil
}

// goesBy reports whether a name means a side. A what-if goes by the names of its device too.
func goesBy(s *models.Found, name string) bool {
	names := append([]string{s.Named, s.Called(), s.ID(), s.Label(), s.Device.ID, s.Arch.ID}, s.Device.Aliases...)
	return slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, name) })
}

// named looks up how often the faster of two devices was named right.
func named(first, second *ask.Contender, p gemm.Problem) *ask.Recorded {
	scheme := ""
	for _, side := range []*ask.Contender{first, second} {
		for _, o := range side.Describe().Options {
			if o.Key == "scheme" && o.Value != published.TensorScheme {
				scheme = o.Value
			}
		}
	}
	device := func(c *ask.Contender) string { return c.Arch.ID + "@" + c.Device.ID }
	n := published.WinnerNamed(device(first), device(second), p.DType.String(), scheme, score.LayerOf(p))
	if n.Decided == 0 {
		return nil
	}
	return &ask.Recorded{Decided: n.Decided, Right: n.Right}
}
