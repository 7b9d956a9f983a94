#!/bin/bash
# The sources of the packages whose kernels are measured, to src/, which git ignores: `get.sh` those of cases.py, `get.sh
# kinds` those of kinds.py. mamba's and TransformerEngine's Python files are taken without what they compile.
set -e
cd "$(dirname "$0")"
mkdir -p src
if [ "$1" != kinds ]; then
	pip download -q --no-deps -d src fla-core==0.6.0
	pip install -q --no-deps -t src einops packaging
else
	pip download -q --no-deps -d src flag-gems==5.0.2
	pip install -q --no-deps -t src einops packaging pyyaml sqlalchemy typing_extensions
	for r in state-spaces/mamba@e9594ce1c732d97440f0332fdc43170a2294dbfa BobMcDear/attorch@67c2772baf33913ef51c2d1064f746ca17b63749 \
		NVIDIA/TransformerEngine@main; do
		mkdir -p "/tmp/${r#*/}" && curl -sL "https://github.com/${r%@*}/archive/${r#*@}.tar.gz" | tar xz --strip 1 -C "/tmp/${r#*/}"
	done
	m=$(echo /tmp/mamba@*) a=$(echo /tmp/attorch@*) t=$(echo /tmp/TransformerEngine@*)
	cp -r "$a/attorch" src/
	mkdir -p src/mamba_ssm/{ops,utils} src/transformer_engine/common/triton
	cp -r "$m/mamba_ssm/ops/triton" src/mamba_ssm/ops/ && cp "$m"/mamba_ssm/utils/{torch,determinism}.py src/mamba_ssm/utils/
	cp "$t/transformer_engine/common/triton/permutation.py" src/transformer_engine/common/triton/
	cp "$t/transformer_engine/pytorch/triton/permutation.py" src/te_permutation.py
	touch src/mamba_ssm/{,ops/,utils/}__init__.py src/transformer_engine/{,common/,common/triton/}__init__.py
fi
for w in src/*.whl; do python3 -m zipfile -e "$w" src; rm "$w"; done
