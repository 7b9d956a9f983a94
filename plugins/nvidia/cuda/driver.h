// What gorgonia.org/cu lacks.
#ifndef ORIGAMI_CUDA_DRIVER_H
#define ORIGAMI_CUDA_DRIVER_H

#include <cuda.h>
#include <stddef.h>
#include <stdint.h>

// origami_driver tells how opening the driver went: NULL, or what is wrong.
const char *origami_driver(void);

// origami_launch starts a kernel whose parameters are in one buffer. With offsets, of each of n parameters, the driver
// places them one by one. Else the buffer is as the driver lays them out.
CUresult origami_launch(CUfunction f, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned threads,
                        unsigned shared, CUstream stream, void *params, size_t bytes, const uintptr_t *offsets,
                        size_t n);

// origami_allow_shared lets a kernel have that much dynamic shared memory, which above 48 KiB must be asked for.
CUresult origami_allow_shared(CUfunction f, int bytes);

// origami_tensor_map writes the map of a batch of matrices in 16-bit or 32-bit elements to 128 bytes. Its tiles have rows
// of 128 bytes, in the 128-byte swizzle; what lies outside of the matrices reads as zero.
CUresult origami_tensor_map(void *map, CUtensorMapDataType type, cuuint64_t address, const cuuint64_t sizes[3],
                            const cuuint64_t strides[2], const cuuint32_t box[3]);

#endif
