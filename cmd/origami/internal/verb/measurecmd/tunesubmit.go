package measurecmd

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/measure"
	"github.com/origami-gemm/origami/core/printable"
)

// The schedulers that jobs are written for.
const (
	slurm      = "slurm"
	kubernetes = "kubernetes"
)

// submitted checks --submit, and makes the shard the first of those that the job has.
func (o *TuneOptions) submitted() error {
	n, auto := strings.CutPrefix(o.Share.Shard, "auto/")
	switch {
	case o.Submit == "":
		return nil
	case o.Submit != slurm && o.Submit != kubernetes:
		return diag.Inputf("there is no scheduler %q", o.Submit).At("--submit").Do("use %s or %s", slurm, kubernetes)
	case !o.DryRun:
		return diag.Inputf("origami writes a job, and leaves submitting it to you").At("--submit %s", o.Submit).
			Do("add --dry-run, which prints it")
	case !auto:
		return diag.Inputf("it is not said how many parts the job has").At("--submit %s", o.Submit).
			Do("add --shard auto/N, as in auto/16")
	case o.Executor == "" || o.Records == "":
		return diag.Inputf("a job measures, into a folder that all its parts see").At("--submit %s", o.Submit).
			Do("add --executor and --records")
	}
	o.Share.Shard = "1/" + n
	return nil
}

// job prints the job that tunes all parts.
func (s *tuning) job() error {
	if s.o.shard.Of > len(s.work.problems) {
		return noPart(len(s.work.problems), s.o.shard.Of, s.o.shard)
	}
	words := jobWords(s.o.Factory.Args)
	var text string
	var err error
	if s.o.Submit == slurm {
		text, err = slurmScript(words, s.o.shard, s.o.Share.GPUs)
	} else {
		text, err = manifest(words, s.o.shard, s.o.Share.GPUs, s.arch.Describe())
	}
	if err != nil {
		return err
	}
	_, err = s.o.Factory.Streams.Writer().Write([]byte(text))
	return err
}

// jobWords are the words of the command line without those that ask for the job.
func jobWords(args []string) []string {
	words := []string{"origami"}
	for i := 0; i < len(args); i++ {
		switch w := args[i]; {
		case w == "--submit":
			i++
		case strings.HasPrefix(w, "--submit="), w == "--dry-run", strings.HasPrefix(w, "--dry-run="):
		default:
			words = append(words, w)
		}
	}
	return words
}

// gpuCount is how many GPUs a part has, 0 for all of a machine.
func gpuCount(gpus string) int {
	if gpus == "all" {
		return 0
	}
	return 1 + strings.Count(gpus, ",")
}

// slurmScript is a script for sbatch.
func slurmScript(words []string, share measure.Shard, gpus string) (string, error) {
	line, err := printable.ShellWords(words...)
	if err != nil {
		return "", diag.Inputf("%v", err).Do("choose another")
	}
	need := fmt.Sprintf("--gpus=%d", gpuCount(gpus))
	if gpuCount(gpus) == 0 {
		need = "--exclusive"
	}
	return fmt.Sprintf(`#!/bin/bash
# sbatch this file, from a folder that all nodes see. Tasks that are repeated go on where they stopped. Then
# merge their records: origami records merge FOLDER
#SBATCH --job-name=origami-tune
#SBATCH --array=1-%d
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH %s
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=origami-tune-%%A-%%a.log
exec %s
`, share.Of, need, line), nil
}

// manifest writes an indexed job for Kubernetes, API batch/v1.
func manifest(words []string, share measure.Shard, gpus string, d *arch.Description) (string, error) {
	n := gpuCount(gpus)
	if n == 0 {
		return "", diag.Inputf("a container is given a number of GPUs").At("--gpus %s", gpus).
			Do("write them out, as in 0,1,2,3, or leave --gpus out for one")
	}
	resource := strings.ToLower(d.Vendor) + ".com/gpu" // as vendors' device plugins name it
	type object = map[string]any
	job := object{
		"apiVersion": "batch/v1", "kind": "Job", "metadata": object{"name": "origami-tune"},
		"spec": object{
			"completionMode": "Indexed", "completions": share.Of, "parallelism": share.Of, "backoffLimitPerIndex": 3,
			"template": object{"spec": object{
				"restartPolicy": "Never",
				"containers": []object{{
					"name": "origami", "image": "origami-tune", "command": words, "workingDir": "/work",
					"resources":    object{"limits": object{resource: n}},
					"volumeMounts": []object{{"name": "work", "mountPath": "/work"}},
				}},
				"volumes": []object{{"name": "work", "persistentVolumeClaim": object{"claimName": "origami-tune"}}},
			}},
		},
	}
	text, err := yaml.Marshal(job)
	if err != nil {
		return "", err
	}
	return "# kubectl apply -f this file. The image has origami and the executor; the claim, which many may write to,\n" +
		"# is where files and records are. docs/many-gpus.md has a recipe for the image.\n" + string(text), nil
}
