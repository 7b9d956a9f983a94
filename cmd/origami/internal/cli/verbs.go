package cli

import (
	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/cmd/origami/internal/server"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/verb/calibratecmd"
	"github.com/origami-gemm/origami/cmd/origami/internal/verb/catalogcmd"
	"github.com/origami-gemm/origami/cmd/origami/internal/verb/comparecmd"
	"github.com/origami-gemm/origami/cmd/origami/internal/verb/evalcmd"
	"github.com/origami-gemm/origami/cmd/origami/internal/verb/laddercmd"
	"github.com/origami-gemm/origami/cmd/origami/internal/verb/logiccmd"
	"github.com/origami-gemm/origami/cmd/origami/internal/verb/measurecmd"
	"github.com/origami-gemm/origami/cmd/origami/internal/verb/modelcmd"
	"github.com/origami-gemm/origami/cmd/origami/internal/verb/pickcmd"
	"github.com/origami-gemm/origami/cmd/origami/internal/verb/picturecmd"
	"github.com/origami-gemm/origami/cmd/origami/internal/verb/pincmd"
	"github.com/origami-gemm/origami/cmd/origami/internal/verb/plugincmd"
	"github.com/origami-gemm/origami/cmd/origami/internal/verb/recordscmd"
	"github.com/origami-gemm/origami/cmd/origami/internal/verb/reportcmd"
	"github.com/origami-gemm/origami/cmd/origami/internal/verb/tablecmd"
)

// verb is a command in help's group, and its question to the server, if it has one.
type verb struct {
	*cobra.Command
	group  string
	served *server.Endpoint
}

// verbs lists the commands in the order of help.
func verbs(f *session.Factory, sys System) []verb {
	return []verb{
		{pickcmd.NewSelect(f), groupAsk, &pickcmd.SelectServed},
		{pickcmd.NewRank(f), groupAsk, &pickcmd.RankServed},
		{pickcmd.NewExplain(f), groupAsk, &pickcmd.ExplainServed},
		{comparecmd.New(f), groupAsk, &comparecmd.Served},
		{modelcmd.New(f), groupAsk, nil},
		{pincmd.New(f), groupAsk, nil},
		{picturecmd.NewMap(f), groupAsk, &picturecmd.MapServed},
		{picturecmd.NewRoofline(f), groupAsk, &picturecmd.RooflineServed},
		{laddercmd.New(f), groupAsk, nil},
		{reportcmd.New(f), groupAsk, nil},
		{server.NewServe(f, Endpoints), groupAsk, nil},
		{measurecmd.NewBench(f), groupAsk, nil},
		{measurecmd.NewTune(f), groupAsk, nil},
		{evalcmd.New(f), groupAsk, &evalcmd.Served},
		{pickcmd.NewExport(f, sys.Export), groupAsk, nil},
		{tablecmd.New(f), groupAsk, nil},
		{catalogcmd.NewArch(f), groupLook, &catalogcmd.Served},
		{catalogcmd.NewTrust(f), groupLook, nil},
		{calibratecmd.NewHere(f), groupLook, nil},
		{calibratecmd.NewCalibrate(f), groupLook, nil},
		{calibratecmd.NewFit(f), groupLook, nil},
		{logiccmd.New(f), groupLook, nil},
		{recordscmd.New(f), groupLook, nil},
		{measurecmd.NewLend(f), groupLook, nil},
		{plugincmd.New(f, sys.Plugins), groupLook, nil},
		{newConfig(f), groupLook, nil},
		{newVersion(f, sys.Protocol), groupLook, nil},
	}
}

// Endpoints are what `origami serve` answers.
func Endpoints() (all []server.Endpoint) {
	for _, v := range verbs(&session.Factory{}, System{}) {
		if v.served != nil {
			e := *v.served
			e.Summary = v.Short
			all = append(all, e)
		}
	}
	return all
}
