#!/bin/bash
# The sources of the packages whose kernels are measured, to src/, which git ignores: `get.sh` those of cases.py, `get.sh
# kinds` those of kinds.py, `get.sh attention` those of attention.py. Of repositories, Python files alone are taken.
set -e
cd "$(dirname "$0")"
mkdir -p src
of() { # a repository at a commit, to /tmp/NAME
	mkdir -p "/tmp/${1#*/}" && curl -sL "https://github.com/$1/archive/$2.tar.gz" | tar xz --strip 1 -C "/tmp/${1#*/}"
}
if [ "$1" = attention ]; then
	pip install -q --no-deps -t src einops trifast==0.1.12 jaxtyping platformdirs wadler-lindig
	of hao-ai-lab/FastVideo 2f3d4074064e4d86f99dc784ebbaa296e6f5925f
	of alexzhang13/flashattention2-custom-mask 817091628883aab3d43c176218805fe16832aa04
	of meta-recsys/generative-recommenders db1bf8f2e8f6a92a738dafd52a245eafb25a222b
	of meta-pytorch/applied-ai 2391954b19988bd76cf3c2ea84c1ce74b68d568b
	cp /tmp/FastVideo/fastvideo-kernel/python/fastvideo_kernel/triton_kernels/block_sparse_attn_triton.py \
		src/fastvideo_block_sparse.py
	cp /tmp/applied-ai/kernels/triton/training/rms_norm/fused_rms_norm.py src/applied_ai_rms_norm.py
	cp -r /tmp/flashattention2-custom-mask/fa2_custom_mask src/
	g=src/generative_recommenders r=/tmp/generative-recommenders/generative_recommenders
	mkdir -p $g/ops && cp $r/common.py $g/ && cp $r/ops/utils.py $g/ops/ && cp -r $r/ops/triton $g/ops/
	touch $g/{,ops/,ops/triton/}__init__.py
elif [ "$1" != kinds ]; then
	pip download -q --no-deps -d src fla-core==0.6.0
	pip install -q --no-deps -t src einops packaging
else
	pip download -q --no-deps -d src flag-gems==5.0.2
	pip install -q --no-deps -t src einops packaging pyyaml sqlalchemy typing_extensions
	of state-spaces/mamba e9594ce1c732d97440f0332fdc43170a2294dbfa
	of BobMcDear/attorch 67c2772baf33913ef51c2d1064f746ca17b63749
	of NVIDIA/TransformerEngine d0067d0da6cb01811b8072a7d304f0e00344ce2b
	m=/tmp/mamba a=/tmp/attorch t=/tmp/TransformerEngine
	cp -r "$a/attorch" src/
	mkdir -p src/mamba_ssm/{ops,utils} src/transformer_engine/common/triton
	cp -r "$m/mamba_ssm/ops/triton" src/mamba_ssm/ops/ && cp "$m"/mamba_ssm/utils/{torch,determinism}.py src/mamba_ssm/utils/
	cp "$t/transformer_engine/common/triton/permutation.py" src/transformer_engine/common/triton/
	cp "$t/transformer_engine/pytorch/triton/permutation.py" src/te_permutation.py
	touch src/mamba_ssm/{,ops/,utils/}__init__.py src/transformer_engine/{,common/,common/triton/}__init__.py
fi
for w in src/*.whl; do [ ! -f "$w" ] || python3 -m zipfile -e "$w" src; rm -f "$w"; done
