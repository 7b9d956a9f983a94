import sys

from origami_gemm_plugin import serve_executor

if sys.argv[1:2] == ["table"]:
    from origami_triton import table

    table.main(sys.argv[2:])
else:
    from origami_triton import Provider

    serve_executor(Provider())
