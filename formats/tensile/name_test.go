package tensile_test

import (
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/formats/tensile"
	"github.com/origami-gemm/origami/internal/testing/must"
)

func TestNames(t *testing.T) {
	for text, want := range map[string]string{
		"Cijk_Ailk_Bjlk_SB":                            "fp32",
		"Cijk_Ailk_Bjlk_HB":                            "fp16",
		"Cijk_Alik_Bljk_HHS_BH":                        "fp16",
		"Cijk_Alik_Bljk_BBS_BH_Bias_HAS_SAV_UserArgs":  "bf16",
		"Cijk_Ailk_Bljk_SB_Bias_HAS_SAV_UserArgs":      "fp32",
		"Cijk_Alik_Bljk_HSS_BH":                        "fp16 with fp32 results",
		"Cijk_Alik_Bljk_F8F8S_BH_SR":                   "no hardware multiplies fp8 operands into fp8 results",
		"Cijk_Alik_Bljk_F8S_BH":                        "fp8 with fp32 results",
		"Cijk_Alik_Bljk_F8B8SS_BH_SAB_UserArgs":        "A is fp8 and B is fp8_e5m2",
		"Cijk_Alik_Bljk_4xi8BH":                        "int8",
		"Cijk_Alik_Bljk_I8II_BH":                       "int8",
		"Cijk_Alik_Bljk_DB":                            "no model knows Tensile's data type D",
		"Cijkl_Aijml_Bmkl_SI":                          "fp32",
		"Cij_Akil_Bkjl_BBH":                            "bf16",
		"Cijk_Ailk_Bjlk":                               "",
		"Cijk_Ailk_Bjlk_S":                             "fp32",
		"Cijk_Alik_Bljk_HHS_BH_Bias_Aux_HAH_SAV_GG_HS": "fp16",
	} {
		n, err := tensile.ParseName(text)
		must.That(t, err == nil && n.String() == text, "%s is read as %s, %v", text, n, err)
		got, err := n.DTypes()
		switch {
		case err != nil:
			must.That(t, strings.HasPrefix(err.Error(), want) && want != "", "%s: %v, want %s", text, err, want)
		case got == (gemm.Types{}) && want != "" || got != (gemm.Types{}) && got.Text() != want:
			t.Errorf("%s: %v, want %s", text, got, want)
		}
	}
}

func TestMistakesInNames(t *testing.T) {
	for text, says := range map[string]string{
		"Cij_Aik_Bkj_QB":    `"Cij_Aik_Bkj_QB": column 13: "QB" does not begin with a data type`,
		"Cij_Aik_Bkj_":      `"Cij_Aik_Bkj_": column 13: the name has no data type`,
		"Cij_Aik_Bkj_SSSSS": `does not begin with a data type`,
		"Cij_Aik_Xkj_SB":    `"Cij_Aik_Xkj_SB": column 9: "Xkj" does not begin with B`,
		"Cij_Aik":           `is no name of a problem type`,
	} {
		_, err := tensile.ParseName(text)
		must.Refuse(t, err, says)
	}
}

func FuzzParseName(f *testing.F) {
	for _, text := range []string{"Cijk_Ailk_Bjlk_HHS_BH_Bias", "Cij_Aik_Bkj_SB", "Cijk_Ailk_Bjlk_4xi8BH"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if n, err := tensile.ParseName(text); err == nil && n.String() != text {
			t.Errorf("%q is written %q", text, n.String())
		}
	})
}
