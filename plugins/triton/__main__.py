from origami_gemm_plugin import serve_executor
from origami_triton import Provider

serve_executor(Provider())
