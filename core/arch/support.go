package arch

import (
	"slices"
	"strings"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
)

// Supports returns the error of SupportsTypes, or one if the problem needs narrower accesses to memory than the same
// problem with dense rows at aligned addresses: a model that calls it has no cost for that.
func (d *Description) Supports(kernel string, p *gemm.Problem) error {
	if err := d.SupportsTypes(kernel, p); err != nil {
		return err
	}
	if p.LDA|p.LDB|p.LDC == 0 && p.AlignA|p.AlignB|p.AlignC == 0 {
		return nil
	}
	return d.supportsAccess(p)
}

// SupportsTypes returns an error if the model does not predict kernels of a family for the types of a problem, or for
// its groups. The empty name means the default family. A family that declares no types passes, but one must declare
// groups: a model that overlooks them would answer for another problem.
func (d *Description) SupportsTypes(kernel string, p *gemm.Problem) error {
	if kernel == "" && len(d.Kernels) > 0 {
		kernel = d.Kernels[0]
	}
	t := p.Types()
	f := d.family(kernel)
	if len(f.Types) > 0 && !slices.Contains(f.Types, t) {
		return diag.Inputf("the %s model of %s does not predict %s kernels for %s", d.Model, d.Arch, kernel, t.Text()).
			Do("use %s", d.supported())
	}
	if p.Groups != (gemm.Groups{}) && !f.Groups {
		return d.noGroups(kernel)
	}
	if p.BeyondProduct() && *p != p.Flat() {
		return diag.Inputf("the %s model of %s predicts A·B of matrices, and the problem is %s", d.Model, d.Arch, *p).
			Do("ask about the matrices alone")
	}
	return nil
}

// familiesThat returns the names of the kernel families that are described as some condition asks for.
func (d *Description) familiesThat(are func(*Family) bool) (names []string) {
	for i := range d.Families {
		if are(&d.Families[i]) {
			names = append(names, d.Families[i].Name)
		}
	}
	return names
}

func nests(f *Family) bool { return f.Nests }

// supportsNests returns an error if a family has no kernels for nested indices.
func (d *Description) supportsNests(kernel string) error {
	families := d.familiesThat(nests)
	err := diag.Inputf("there are no %s kernels for nested indices", kernel)
	switch {
	case slices.Contains(families, kernel):
		return nil
	case families == nil:
		return err.Do("use another model, or ask about the matrices alone")
	}
	return err.Do("use %s kernels", strings.Join(families, " or "))
}

// NestFamily returns the first kernel family with kernels for nested indices, empty if there is none.
func (d *Description) NestFamily() string {
	if families := d.familiesThat(nests); families != nil {
		return families[0]
	}
	return ""
}

func (d *Description) noGroups(kernel string) error {
	err := diag.Inputf("the %s model of %s does not predict %s kernels for problems in groups", d.Model, d.Arch, kernel)
	if others := d.familiesThat(func(f *Family) bool { return f.Groups }); others != nil {
		return err.Do("use %s kernels", others[0])
	}
	return err.Do("use another model, or ask about each group by itself")
}

// supported lists the types of each family.
func (d *Description) supported() string {
	var lists []string
	families := map[string][]string{} // by list
	for i := range d.Families {
		if f := &d.Families[i]; len(f.Types) > 0 {
			text := gemm.TypesText(f.Types)
			if families[text] == nil {
				lists = append(lists, text)
			}
			families[text] = append(families[text], f.Name)
		}
	}
	for i, text := range lists {
		lists[i] += " with " + strings.Join(families[text], " or ")
	}
	return strings.Join(lists, ", or ")
}

func (d *Description) supportsAccess(p *gemm.Problem) error {
	dense := *p
	dense.LDA, dense.LDB, dense.LDC = 0, 0, 0
	dense.AlignA, dense.AlignB, dense.AlignC = 0, 0, 0
	for o := gemm.A; o <= gemm.C; o++ {
		if got, want := p.VectorBytes(o), dense.VectorBytes(o); got < want {
			return diag.Inputf("the rows of %s are aligned to %d bytes, and the %s model of %s has no cost for loads and "+
				"stores of less than %d", o, got, d.Model, d.Arch, want).
				Do("align the address and the leading dimension to %d bytes", want)
		}
	}
	return nil
}
