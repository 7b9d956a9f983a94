"""The sizes that a model's class has where its config.json is silent, from the wheel of transformers:
python3 classes.py transformers-5.24.0-py3-none-any.whl > classes.json"""

import ast
import json
import re
import sys
import zipfile

FIELDS = re.compile(
    r"^(\w*hidden_size|d_model|n_embd|intermediate_size\w*|ffn_dim|ffn_hidden_size|\w*n_inner"
    r"|num_attention_heads|n_heads?|num_key_value_heads|num_kv_heads|head_dim|num_hidden_layers|n_layers?|num_layers"
    r"|vocab_size|num_local_experts"
    r"|num_experts|n_routed_experts|moe_num_experts|num_experts_per_tok|moe_topk|moe_k|moe_top_k|top_k_experts"
    r"|\w*expert\w*_intermediate_size|moe_intermediate_size|expert_ffn_hidden_size|first_k_dense_replace"
    r"|num_dense_layers|decoder_sparse_step|moe_layer_\w+|interleave_moe_layer_step|n_shared_experts|num_shared_experts"
    r"|mamba_\w+_heads|mamba_d_\w+|ssm_state_size|state_size|conv_L_cache|layer_group_size|share_q_dim|o_lora_rank"
    r"|global_head_dim|swa_num_attention_heads|altup_num_inputs|zero_expert_num"
    r"|linear_num_heads|linear_attn_alpha_factor"
    r"|moe_num_shared_experts|share\w*_expert_dim|[qk]v?_lora_rank|\w+_head_dim|linear_num_\w+|expert_layer_\w+)$"
)


def number(node):
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return None
    numbers = value if isinstance(value, (list, tuple)) else [value]
    return value if all(type(one) in (int, float) for one in numbers) else None


wheel = zipfile.ZipFile(sys.argv[1])
classes, gates = {}, {}
for name in sorted(wheel.namelist()):
    if found := re.search(r"models/(\w+)/(configuration|modeling)_\w+\.py$", name):
        text = wheel.read(name).decode()
        if found[2] == "modeling":
            if re.search(r"For(CausalLM|ConditionalGeneration)\b", text):
                gates[found[1]] = bool(re.search(r"gate_proj|gate_up|\bw[13]\b|glu", text, re.I))
            continue
        for node in ast.parse(text).body:
            if isinstance(node, ast.ClassDef):
                own, kind = {}, None
                for line in node.body:
                    target = getattr(line, "target", None) or getattr(line, "targets", [None])[0]
                    if isinstance(target, ast.Name) and target.id == "model_type" and line.value:
                        kind = ast.literal_eval(line.value)
                    elif isinstance(target, ast.Name) and FIELDS.match(target.id) and line.value:
                        own[target.id] = number(line.value)
                classes[node.name] = (kind, [getattr(b, "id", "") for b in node.bases], own, found[1])


def fields(name):
    kind, bases, own, folder = classes.get(name, (None, [], {}, ""))
    return {k: v for b in bases for k, v in fields(b).items()} | own


out = {}
for name, (kind, bases, own, folder) in classes.items():
    mine = {k: v for k, v in sorted(fields(name).items()) if v}
    if kind and folder in gates and "vocab_size" in mine and not re.search("vision|audio|encoder|talker|speech", kind):
        out[kind] = mine | ({} if gates[folder] else {"gateless": 1})
print("{" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in sorted(out.items())) + "}")
